// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/front_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/answer.h"
#include "harness/publish/coverage.h"
#include "harness/publish/faults.h"
#include "harness/publish/layouts.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"
#include "harness/site/matrix_table.h"
#include "harness/site/mutation_view.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

class Front {
 public:
  Front(const SiteTable& table, const SiteRuns& runs) : table_(table), runs_(runs) {}

  Markup Answers() const {
    Markup cards;
    for (const Answer& answer : AnswersOf(table_.table)) cards << Card(answer);
    return Element("div", {{"class", "answers"}}, cards);
  }

 private:
  std::string LinkTo(const PublishedCell& cell) const {
    return PageOfEvidence(cell.evidence, table_, runs_);
  }

  // A badge per attention; a line per model where there are several.
  Markup Chips(const PublishedRow& row) const {
    std::map<std::string, Markup> lines;  // by model and precision
    std::set<std::string> seen;
    const bool has_plain =
        std::any_of(row.cells.begin(), row.cells.end(),
                    [](const PublishedCell& cell) { return OptionsText(cell.probe).empty(); });
    for (const PublishedCell& cell : row.cells) {
      // Cells with options are left to the table, unless there are no others.
      if (has_plain && !OptionsText(cell.probe).empty()) continue;
      const std::string line =
          absl::StrCat(cell.probe.model, ", ", cell.probe.precision,
                       OptionsText(cell.probe).empty() ? "" : ", ", OptionsText(cell.probe));
      if (!seen.insert(absl::StrCat(line, cell.probe.attention)).second) continue;
      lines[line] << Element(
          "li", VerdictBadge(cell.evidence.verdict.kind, LinkTo(cell), cell.probe.attention));
    }
    Markup all;
    for (const auto& [line, chips] : lines) {
      all << Element("p", {{"class", "eyebrow"}}, line)
          << Element("ul", {{"class", "chips"}}, chips);
    }
    return all;
  }

  Markup Card(const Answer& answer) const {
    const EngineKind& kind = *FindEngineKind(answer.engine);
    const Markup eyebrow =
        Element("p", {{"class", "eyebrow"}},
                absl::StrCat(kind.engine_source.empty()
                                 ? absl::StrCat(kind.library_source, " by its own trainer")
                                 : ShortTitle(kind),
                             " (", kind.name, ")"));
    if (!answer.best) {
      return Element("article", {{"class", "card answer none"}},
                     {eyebrow, Element("h2", absl::StrCat("None of ", answer.rows, " pairs works")),
                      Others("What was run", answer)});
    }
    const PublishedRow& row = *answer.best;
    Markup card = {
        eyebrow, Element("h2", absl::StrCat("Install ", PairLabel(row))),
        Element(
            "p", {{"class", "soft small"}},
            absl::StrCat(
                kind.engine_source.empty()
                    ? ""
                    : absl::StrCat(kind.engine_source, " ", VersionText(row.engine_version), ", "),
                row.library, " ", LibraryText(row), row.torch.empty() ? "" : ", torch ", row.torch,
                row.python.empty() ? "" : ", Python ", row.python, ", ", row.device)),
        Chips(row), LayoutsLine(row, [&](const Evidence& evidence) {
          return PageOfEvidence(evidence, table_, runs_);
        })};
    if (!row.install.empty()) {
      card << CommandBlock(row.install, absl::StrCat("how to install ", PairLabel(row)));
      if (!row.pylock.empty()) {
        card << Element("p", {{"class", "small"}},
                        {"The lock names every package and its hash: ",
                         Element("a", {{"href", row.pylock}}, row.pylock)});
      }
    }
    card << Beware(row);
    card << Element("p", {Element("strong", "Why this one. "), WhyThis(answer)}) << Covered(row)
         << Others(kind.engine_source.empty()
                       ? absl::StrCat("Other versions of ", kind.library_source)
                       : absl::StrCat("The same ", kind.engine_source, " with other versions of ",
                                      kind.library_source),
                   answer);
    return Element("article", {{"class", "card answer"}}, card);
  }

  // What trains and is silently something else than what was asked.
  Markup Beware(const PublishedRow& row) const {
    Markup items;
    for (const RowFault& fault : FaultsOf(CellsByProbe(row))) {
      if (!fault.is_silent) continue;
      items << Element("li", {absl::StrCat(ConditionText(fault.condition), ": "),
                              VerdictBadge(fault.cell->evidence.verdict.kind, LinkTo(*fault.cell),
                                           fault.cell->evidence.verdict.reason)});
    }
    if (items.empty()) return {};
    return {Element("p", {Element("strong", "Beware. "), "It trains, and is silently wrong with:"}),
            Element("ul", items)};
  }

  static Markup Covered(const PublishedRow& row) {
    const Coverage coverage = CoverageOf(row);
    Markup lists = Element("summary", "What was measured, and what was not");
    for (const auto& [title, entries] :
         {std::pair{"ok with", &coverage.ok}, std::pair{"not ok with", &coverage.not_ok},
          std::pair{"not tested", &coverage.not_tested}}) {
      if (entries->empty()) continue;
      Markup items;
      for (const std::string& entry : *entries) items << Element("li", entry);
      lists << Element("p", {{"class", "eyebrow"}}, title) << Element("ul", items);
    }
    return Element("details", lists);
  }

  std::string WhyThis(const Answer& answer) const {
    const PublishedRow& row = *answer.best;
    std::string proof;
    for (const PublishedCell& cell : row.cells) {
      if (IsOk(cell) && proof.empty()) proof = cell.evidence.verdict.message;
    }
    std::string text =
        absl::StrCat("It is the newest of ", answer.rows, " rows that does what it is asked",
                     proof.empty() ? "" : absl::StrCat(": ", proof), ". Measured on ", row.measured,
                     row.expires.empty() ? "" : absl::StrCat(", expires on ", row.expires),
                     SandboxNote(row), ". ");
    const bool is_pair = HasEngine(row);
    if (answer.releases == answer.best)
      return absl::StrCat(text, is_pair ? "Both sides are releases." : "It is a release.");
    if (answer.releases)
      return absl::StrCat(text, "The newest ", is_pair ? "pair of releases" : "release",
                          " that works: ", PairLabel(*answer.releases), ".");
    if (answer.release_rows == 0) return text;
    return absl::StrCat(text, "No ", is_pair ? "pair of releases" : "release", " works (",
                        answer.release_rows,
                        answer.release_rows == 1 ? " was run)." : " were run).");
  }

  Markup Others(const std::string& title, const Answer& answer) const {
    Markup items;
    for (const PublishedRow* row : answer.others) {
      const PublishedCell& cell = *std::min_element(
          row->cells.begin(), row->cells.end(),
          [](const PublishedCell& a, const PublishedCell& b) { return IsOk(a) > IsOk(b); });
      const std::string why = WhyText(cell.evidence.verdict);
      items << Element("li", {VerdictBadge(cell.evidence.verdict.kind, LinkTo(cell)), " ",
                              absl::StrCat(answer.best ? row->library : PairLabel(*row), " ",
                                           answer.best ? LibraryText(*row) : ""),
                              why.empty() ? Markup()
                                          : Element("span", {{"class", "why clamp"}},
                                                    absl::StrCat(cell.probe.attention, " ", why))});
    }
    if (items.empty()) return {};
    return Element("details",
                   {Element("summary", title), Element("ul", {{"class", "plain"}}, items)});
  }

  const SiteTable& table_;
  const SiteRuns& runs_;
};

std::string CountsText(const PublishedTable& table) {
  if (table.rows.empty()) {
    return "No pair of versions was run; folders and controls do not count.";
  }
  int works = 0;
  for (const PublishedRow& row : table.rows) works += Works(row);
  return absl::StrCat(table.rows.size(), " pairs of versions were run; ", works,
                      " do what they are asked with at least one attention.");
}

}  // namespace

Page FrontPage(const SiteTable& table, const SiteRuns& runs,
               const std::vector<MutatedPair>& mutated) {
  Page page;
  page.path = "index.html";
  page.title = "Which versions work together";
  const auto link = [&](const Evidence& evidence) { return PageOfEvidence(evidence, table, runs); };
  page.main
      << Element("h1", page.title)
      << Element(
             "p", {{"class", "lead"}},
             {"Each pair of versions ran real training steps on packed documents. A pair works "
              "if the attention, the mask and every number are what was asked; the absence of an "
              "error is not enough. ",
              Element("a", {{"href", "about.html"}}, "How bkm judges"), "."})
      << Front(table, runs).Answers() << Element("h2", {{"id", "table"}}, "Everything that was run")
      << Element("p", {CountsText(table.table), " A verdict links to its evidence."})
      << MutationFigure(mutated) << FilterForm(table.table)
      << MatrixTables(table.table, table.today, link)
      << Element("h2", {{"id", "verdicts"}}, "What the verdicts mean") << VerdictLegend();
  return page;
}

}  // namespace bkm
