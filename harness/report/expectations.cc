// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/expectations.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"
#include "harness/model/asked_cell.h"
#include "harness/model/dimension.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// Whether a line must list the cell. An unsupported cell counts: a witness that went blind would
// otherwise look like nothing at all.
bool Fails(const CellRecord& cell) {
  if (!cell.verdict || cell.is_flaky()) return false;
  switch (cell.verdict->kind) {
    case VerdictKind::kRefused:
    case VerdictKind::kBroken:
    case VerdictKind::kWrong:
    case VerdictKind::kUnsupported:
      return true;
    default:
      return false;
  }
}

// `message` in one line that is safe in a comment.
std::string Words(absl::string_view message) {
  const std::string words = ShownLine(MessageWithoutPlace(message));
  return words.empty() ? "no message" : words;
}

// A filter that matches `cell` and no passing cell of `run`: it names the default values that tell
// the cell from passing ones, since a key that a filter does not name matches everything.
std::string FilterFor(const CellRecord& cell, const RunRecord& run) {
  std::string text = AskedText(cell.cell);
  for (const Dimension& key : Dimensions()) {
    if (!key.IsOmitted(cell.cell)) continue;
    const absl::StatusOr<CellFilter> filter = CellFilter::Parse(text);
    HARNESS_CHECK(filter.ok()) << filter.status();
    const bool confused =
        std::any_of(run.cells.begin(), run.cells.end(), [&](const CellRecord& other) {
          return other.role == CellRole::kSubject && other.is_green() &&
                 filter->Matches(other.cell) && !key.IsOmitted(other.cell);
        });
    if (confused) absl::StrAppend(&text, ",", key.name, "=", key.default_text);
  }
  // A filter ends at the first " -> ".
  return absl::StrReplaceAll(text, {{" ", "%20"}});
}

std::string LineFor(const CellRecord& cell, const RunRecord& run, const std::string& why) {
  return absl::StrCat(FilterFor(cell, run), " -> ", ShortText(*cell.verdict), "  # ", why);
}

}  // namespace

absl::string_view Name(SurpriseKind kind) {
  switch (kind) {
    case SurpriseKind::kUnlisted:
      return "unlisted";
    case SurpriseKind::kOtherReason:
      return "other-reason";
    case SurpriseKind::kPassing:
      return "passing";
    case SurpriseKind::kNeverSeen:
      return "never-seen";
  }
  return "";
}

bool Expectations::Line::Covers(const CellRecord& cell) const {
  return filter && cell.role == CellRole::kSubject && filter->Matches(cell.cell);
}

bool Expectations::Line::Agrees(const Verdict& found) const {
  return verdict == Name(found.kind) && (stage.empty() || stage == Name(found.stage)) &&
         (reason.empty() || reason == found.reason);
}

std::string Expectations::Line::Expected() const {
  return absl::StrCat(verdict, stage.empty() ? "" : " at ", stage, reason.empty() ? "" : ", ",
                      reason);
}

std::filesystem::path Expectations::FileOf(const std::filesystem::path& matrix) {
  return matrix.parent_path() / (matrix.stem().string() + ".expect.txt");
}

std::string Expectations::Place(const Line& line) const {
  return absl::StrCat(origin_, ":", line.number);
}

absl::StatusOr<Expectations::Line> Expectations::ParseLine(absl::string_view text, int number,
                                                           const std::string& origin) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ":", number, ": ", what,
                     ": a line is FILTER -> VERDICT at STAGE, REASON  # why it fails"));
  };
  Line line{.number = number, .text = std::string(text)};
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  if (stripped.empty() || stripped[0] == '#') return line;
  const size_t arrow = stripped.find(" -> ");
  if (arrow == stripped.npos) return error("' -> ' is missing");
  absl::StatusOr<CellFilter> filter =
      CellFilter::Parse(absl::StripAsciiWhitespace(stripped.substr(0, arrow)));
  if (!filter.ok()) return error(filter.status().message());
  line.filter = *std::move(filter);
  const absl::string_view rest = stripped.substr(arrow + 4);
  const size_t hash = rest.find('#');
  if (hash != rest.npos) line.why = std::string(absl::StripAsciiWhitespace(rest.substr(hash + 1)));
  if (line.why.empty()) return error("the reason after '#' is missing");
  const absl::string_view expected = absl::StripAsciiWhitespace(rest.substr(0, hash));
  const std::vector<std::string> at = absl::StrSplit(expected, absl::MaxSplits(" at ", 1));
  line.verdict = at[0];
  if (at.size() == 2) {
    const std::vector<std::string> parts = absl::StrSplit(at[1], absl::MaxSplits(", ", 1));
    line.stage = parts[0];
    if (parts.size() == 2) line.reason = parts[1];
  }
  static const auto& failing =
      *new std::set<std::string>{"refused", "broken", "wrong", "unsupported"};
  if (!failing.contains(line.verdict)) {
    return error(absl::StrCat("'", line.verdict,
                              "' is not a failing verdict (refused, broken, wrong, unsupported)"));
  }
  if (!line.stage.empty() && !StageFromName(line.stage))
    return error(absl::StrCat("unknown stage '", line.stage, "'"));
  return line;
}

absl::StatusOr<Expectations> Expectations::Parse(absl::string_view text,
                                                 const std::string& origin) {
  Expectations expectations;
  expectations.origin_ = origin;
  if (text.empty()) return expectations;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    ASSIGN_OR_RETURN(expectations.lines_.emplace_back(), ParseLine(line, ++number, origin));
  }
  return expectations;
}

absl::StatusOr<Expectations> Expectations::Read(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Parse(text, path.string());
}

const Expectations::Line* Expectations::LineFor(const CellRecord& cell) const {
  const Line* first = nullptr;
  for (const Line& line : lines_) {
    if (!line.Covers(cell)) continue;
    if (cell.verdict && line.Agrees(*cell.verdict)) return &line;
    if (!first) first = &line;
  }
  return first;
}

std::vector<Surprise> Expectations::Compare(const RunRecord& run, bool whole) const {
  std::vector<Surprise> surprises;
  const auto add = [&](SurpriseKind kind, const CellRecord& cell, const std::string& what) {
    surprises.push_back({kind, &cell, absl::StrCat(CellLabel(cell), ": ", what)});
  };
  for (const CellRecord& cell : run.cells) {
    if (cell.role != CellRole::kSubject || (!Fails(cell) && !cell.is_green())) continue;
    const Line* line = LineFor(cell);
    if (cell.is_green()) {
      if (line)
        add(SurpriseKind::kPassing, cell,
            absl::StrCat("passes, but ", Place(*line), " expects ", line->Expected(),
                         ": remove the line (bkm accept RUN --expect FILE does)"));
    } else if (!line) {
      add(SurpriseKind::kUnlisted, cell,
          absl::StrCat(ShortText(*cell.verdict), ": ", cell.verdict->message,
                       " (not listed; bkm explain shows the cell)"));
    } else if (!line->Agrees(*cell.verdict)) {
      add(SurpriseKind::kOtherReason, cell,
          absl::StrCat(ShortText(*cell.verdict), ": ", cell.verdict->message, " (", Place(*line),
                       " expects ", line->Expected(), ")"));
    }
  }
  for (const Line& line : lines_) {
    const bool seen = std::any_of(run.cells.begin(), run.cells.end(),
                                  [&](const CellRecord& cell) { return line.Covers(cell); });
    if (!whole || !line.filter || seen) continue;
    surprises.push_back(
        {SurpriseKind::kNeverSeen, nullptr,
         absl::StrCat(Place(line),
                      ": stale expectation, matches no cell of the run: ", line.text)});
  }
  return surprises;
}

std::string Expectations::Rewritten(const RunRecord& run) const {
  std::vector<std::string> out;
  std::set<const CellRecord*> listed;
  for (const Line& line : lines_) {
    std::vector<const CellRecord*> covered;
    for (const CellRecord& cell : run.cells) {
      if (line.Covers(cell)) covered.push_back(&cell);
    }
    // Inconclusive and flaky cells neither confirm nor refute a line.
    const bool holds = !covered.empty() &&
                       std::all_of(covered.begin(), covered.end(), [&](const CellRecord* cell) {
                         return Fails(*cell) ? line.Agrees(*cell->verdict) : !cell->is_green();
                       });
    if (!line.filter || holds) {
      out.push_back(line.text);
      listed.insert(covered.begin(), covered.end());
      continue;
    }
    for (const CellRecord* cell : covered) {
      if (Fails(*cell) && listed.insert(cell).second)
        out.push_back(bkm::LineFor(*cell, run, line.why));
    }
  }
  for (const CellRecord& cell : run.cells) {
    if (cell.role == CellRole::kSubject && Fails(cell) && listed.insert(&cell).second)
      out.push_back(bkm::LineFor(cell, run, Words(cell.verdict->message)));
  }
  return out.empty() ? "" : absl::StrJoin(out, "\n") + "\n";
}

}  // namespace bkm
