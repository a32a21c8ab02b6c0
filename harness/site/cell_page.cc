// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/cell_page.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/base/json_facts.h"
#include "harness/judge/claims.h"
#include "harness/model/engine_kind.h"
#include "harness/model/sandbox_level.h"
#include "harness/report/command_text.h"
#include "harness/report/labels.h"
#include "harness/runner/task.h"
#include "harness/site/evidence_view.h"
#include "harness/site/rank_view.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

constexpr size_t kMostWarnings = 30;

Markup Heading(const std::string& text, const char* id) {
  return Element("h2", {{"id", id}}, text);
}

class Facts {
 public:
  Facts& Add(const std::string& name, const Markup& value) {
    if (!value.empty()) rows_ << Element("dt", name) << Element("dd", value);
    return *this;
  }
  Markup List() const { return Element("dl", {{"class", "facts"}}, rows_); }

 private:
  Markup rows_;
};

struct Rung {
  const char* look = "ahead";
  const char* sign = "\u00b7";
  std::string says;
};

Rung RungAt(const CellEvidence& evidence, Stage stage, bool entered) {
  const Verdict& verdict = evidence.verdict;
  const bool is_ok = verdict.kind == VerdictKind::kOk;
  if (!is_ok && verdict.stage == stage && verdict.kind != VerdictKind::kSkipped) {
    return {.look = "stopped",
            .sign = verdict.kind == VerdictKind::kWrong ? "\u2260" : "\u2717",
            .says = absl::StrCat(Name(verdict.kind), verdict.reason.empty() ? "" : ": ",
                                 MeaningOfReason(verdict.reason))};
  }
  // A cell that ran to the end can still fail a rung that it passed.
  if (FailsAt(verdict, stage))
    return {.look = "stopped", .sign = "\u2260", .says = "not as asked either"};
  const bool is_optional = stage > Stage::kGolden;
  if (!entered && is_optional) return {.says = is_ok ? "not asked for" : "not reached"};
  const bool below = is_ok || stage < verdict.stage;
  if (!entered && !below) return {.says = "not reached"};
  return {.look = "passed", .sign = "\u2713", .says = MeaningOf(stage)};
}

Markup Ladder(const CellEvidence& evidence) {
  std::map<Stage, std::optional<double>> times;
  if (evidence.observation) {
    for (const ObservedStage& stage : evidence.observation->stages)
      times[stage.stage] = stage.seconds;
  }
  Markup rungs;
  for (const Stage stage : Stages()) {
    const auto time = times.find(stage);
    const Rung rung = RungAt(evidence, stage, time != times.end());
    const std::string seconds = time == times.end() ? ""
                                : time->second      ? absl::StrFormat("%.2f s", *time->second)
                                                    : std::string("ended here");
    rungs << Element("li", {{"class", rung.look}},
                     {Element("span", {{"class", "sign"}}, rung.sign),
                      Element("span", {{"class", "rung"}}, std::string(Name(stage))),
                      Element("span", {{"class", "time"}}, seconds),
                      Element("span", {{"class", "says"}}, rung.says)});
  }
  return Element("ol", {{"class", "ladder"}}, rungs);
}

const char* OwnerText(FrameOwner owner) {
  switch (owner) {
    case FrameOwner::kEngine:
      return "engine";
    case FrameOwner::kLibrary:
      return "library";
    case FrameOwner::kTorch:
      return "torch";
    case FrameOwner::kRuntime:
      return "a package";
    case FrameOwner::kPython:
      return "Python";
    case FrameOwner::kHarness:
      return "bkm";
  }
  return "";
}

Markup Frames(const ObservedException& exception, bool own_code_only) {
  Markup frames;
  for (const ObservedFrame& frame : exception.frames) {
    // Frames of Python's import machinery have no source.
    if (absl::StartsWith(frame.file, "<frozen")) continue;
    const bool subject = frame.owner == FrameOwner::kEngine || frame.owner == FrameOwner::kLibrary;
    if (own_code_only && !subject && &frame != &exception.frames.back()) continue;
    frames << Element("li", subject ? html::Attributes{{"class", "blamed"}} : html::Attributes{},
                      {Element("span", {{"class", "owner"}}, OwnerText(frame.owner)),
                       Element("span", {{"class", "small"}},
                               absl::StrCat(frame.file, ":", frame.line, " in ", frame.function)),
                       Element("code", frame.text)});
  }
  return frames.empty() ? Markup() : Element("ol", {{"class", "frames"}}, frames);
}

Markup ExceptionSection(const CellEvidence& evidence) {
  if (!evidence.observation || evidence.observation->exceptions.empty()) return {};
  Markup section = Heading("What stopped it", "exception");
  bool first = true;
  for (const ObservedException& exception : evidence.observation->exceptions) {
    if (!first) section << Element("h3", "Caused by");
    section << Element("pre", {{"class", "message"}},
                       absl::StrCat(exception.type, ": ", exception.message))
            << Frames(exception, /*own_code_only=*/true);
    if (exception.frames.size() > 1) {
      section << Element("details",
                         {Element("summary", absl::StrCat("All ", exception.frames.size(),
                                                          " frames, outermost first")),
                          Frames(exception, /*own_code_only=*/false)});
    }
    first = false;
  }
  return section;
}

// 37, 150 and then 20, 1, 364: the layouts of two steps.
std::string DocumentsText(const Probe& probe) {
  return absl::StrJoin(probe.documents, " and then ", [](std::string* out, const auto& lengths) {
    absl::StrAppend(out, absl::StrJoin(lengths, ", "));
  });
}

std::string OptimizerText(const OptimizerSettings& optimizer) {
  return absl::StrFormat(
      "AdamW, learning rate %g, betas %g and %g, epsilon %g, weight decay %g, "
      "gradients clipped to a norm of %g%s%s",
      optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
      optimizer.weight_decay, optimizer.clip_norm,
      optimizer.warmup_steps > 0 ? absl::StrFormat(", warm-up of %d steps (%s)",
                                                   optimizer.warmup_steps, optimizer.schedule)
                                 : "",
      optimizer.decay.empty()
          ? ""
          : absl::StrFormat(", %s decay to %g of the rate after %d steps", optimizer.decay,
                            optimizer.min_lr_factor, optimizer.total_steps));
}

Markup AskedSection(const CellRecord& record, const CellEvidence& evidence) {
  const Cell& cell = record.cell;
  const Probe& probe = cell.probe;
  Facts facts;
  if (cell.engine_subject) {
    facts.Add("Engine",
              absl::StrCat(cell.engine, ", ", cell.engine_subject->ToString(),
                           record.engine_date.empty() ? "" : ", of ", record.engine_date));
  } else {
    facts.Add("Engine", absl::StrCat("none: ", ShortTitle(*FindEngineKind(cell.engine))));
  }
  facts.Add("Library",
            cell.library_subject
                ? absl::StrCat(cell.library_subject->ToString(),
                               record.library_date.empty() ? "" : ", of ", record.library_date)
                : LibraryText(record));
  facts.Add(
      "Runtime",
      absl::StrCat(cell.runtime, cell.torch.empty() ? "" : absl::StrCat(", torch ", cell.torch),
                   record.lock.empty() ? "" : absl::StrCat(", lock ", record.lock.substr(0, 12)),
                   cell.relax.empty()
                       ? ""
                       : absl::StrCat(", without the pins ", absl::StrJoin(cell.relax, ", "))));
  facts.Add("Model", absl::StrCat(probe.model, probe.head == "value" ? ", a critic" : "", ", ",
                                  probe.precision, " on ", probe.device));
  facts.Add("Attention", probe.attention);
  facts.Add("Layout", LayoutSentence(probe.layout));
  facts.Add("Batch", absl::StrCat(probe.input, " documents of ", DocumentsText(probe), " tokens, ",
                                  probe.steps, probe.steps == 1 ? " step, " : " steps, ",
                                  probe.micro_batches,
                                  probe.micro_batches == 1 ? " micro-batch" : " micro-batches",
                                  " each, seed ", probe.seed));
  facts.Add("Optimizer", OptimizerText(probe.optimizer));
  if (const std::string options = OptionsText(cell); !options.empty())
    facts.Add("Options", options);
  if (!cell.plant.empty()) facts.Add("Planted", absl::StrJoin(cell.plant, ", "));
  std::vector<std::string> shims;
  for (const auto& [name, acted] : ObjectOf(evidence.raw, "shims").items()) {
    if (acted.is_number_integer())
      shims.push_back(absl::StrCat(name, " (acted ", acted.get<int64_t>(), " times)"));
  }
  for (const Json& shim : ListOf(evidence.raw, "shims")) {  // of older runs
    if (shim.is_string()) shims.push_back(shim.get<std::string>());
  }
  if (!shims.empty()) facts.Add("GPU shims", absl::StrJoin(shims, ", "));
  facts.Add("Id", Element("code", record.id));
  return {Heading("What was asked", "asked"), facts.List()};
}

Markup WarningsSection(const CellEvidence& evidence) {
  if (!evidence.raw.is_object() || !evidence.raw.contains("warnings") ||
      !evidence.raw["warnings"].is_array() || evidence.raw["warnings"].empty())
    return {};
  const Json& warnings = evidence.raw["warnings"];
  Markup items;
  size_t shown = 0;
  for (const Json& warning : warnings) {
    if (!warning.is_string()) continue;
    if (++shown > kMostWarnings) break;
    items << Element("li", warning.get<std::string>());
  }
  if (warnings.size() > kMostWarnings)
    items << Element("li", absl::StrCat("and ", warnings.size() - kMostWarnings, " more"));
  return {Heading("Warnings", "warnings"),
          Element("details", {Element("summary", absl::StrCat(warnings.size(), warnings.size() == 1
                                                                                   ? " warning"
                                                                                   : " warnings")),
                              Element("ul", {{"class", "small"}}, items)})};
}

Markup AgainSection(const SiteRun& run, const CellRecord& cell) {
  Markup section = Heading("Reproduce it", "again");
  const std::string folder = run.directory().root().string();
  const std::string name = std::filesystem::path(cell.dir).filename().string();
  section << Element("p", "On any machine, from scratch:")
          << CommandBlock({CommandOf(cell.cell)}, "the command that runs this cell");
  section << Element("p",
                     "With the run's folder: replay the cell in a fresh process, or explain it.")
          << CommandBlock({absl::StrCat("bkm replay ", ShellWord(folder), " ", ShellWord(name)),
                           absl::StrCat("bkm explain ", ShellWord(folder), " ", ShellWord(name))},
                          "the commands that replay and explain this cell");
  const std::string stem = PathPart(name);
  return {
      section,
      Element("p",
              {"Raw: ", Element("a", {{"href", stem + ".verdict.json"}}, "verdict and evidence"),
               cell.verdict ? Markup({", ", Element("a", {{"href", stem + ".observation.json"}},
                                                    "observation")})
                            : Markup(),
               " (JSON)."})};
}

Markup Summary(const SiteRuns& runs, const SiteRun& run, const CellRecord& cell,
               const CellEvidence& evidence) {
  const Verdict& verdict = evidence.verdict;
  Facts facts;
  if (!verdict.reason.empty()) {
    facts.Add("Reason", {Element("code", verdict.reason), ": ", MeaningOfReason(verdict.reason)});
  }
  if (!verdict.blame.empty()) facts.Add("Whose fault", absl::StrJoin(verdict.blame, ", "));
  if (cell.stability) {
    std::vector<std::string> counts;
    for (const auto& [name, count] : cell.stability->verdicts)
      counts.push_back(absl::StrCat(name, " ", count, " times"));
    facts.Add("Measured again",
              absl::StrCat(cell.stability->runs, " runs: ", absl::StrJoin(counts, ", "),
                           cell.stability->flaky() ? " (flaky)" : ""));
  }
  if (cell.role == CellRole::kControl)
    facts.Add("Role", "a control: the library alone, to tell whose fault a failure is");
  if (cell.role == CellRole::kRepeat) facts.Add("Role", "a repeat of another cell");
  if (cell.role == CellRole::kTwin)
    facts.Add("Role", "a twin: another cell without an engine option");
  const auto link = [&](const char* name, const std::string& id) {
    const std::string page = runs.PageOfId(id);
    facts.Add(name, page.empty() ? Element("code", id)
                                 : Element("a", {{"href", RelativeLink(run.PageOf(cell), page)}},
                                           Element("code", id)));
  };
  if (const CellRecord* control = FindControl(run.record(), cell)) link("Control", control->id);
  if (cell.inherited_from) link("Inherited from", *cell.inherited_from);
  if (!cell.repeat_of.empty()) link("Repeats", cell.repeat_of);
  facts.Add("Sandbox", LevelText(LevelOnDevice(run.record().sandbox, cell.cell.probe.device)));
  const CellCost& cost = cell.cost;
  if (cost.seconds > 0) facts.Add("Duration", absl::StrFormat("%.1f s", cost.seconds));
  if (cost.step_seconds > 0)
    facts.Add("Step",
              absl::StrFormat("%.2f s, the median of all but the first", cost.step_seconds));
  if (cost.peak_mib > 0) facts.Add("Memory", absl::StrFormat("%.0f MiB at most", cost.peak_mib));
  return facts.List();
}

}  // namespace

std::string CellTitle(const CellRecord& cell) {
  std::string label = CellLabel(cell);
  const size_t cross = label.find(" x ");
  if (cross != std::string::npos) label.replace(cross, 3, " \u00d7 ");
  return label;
}

Page CellPage(const SiteRuns& runs, const SiteRun& run, const CellRecord& cell,
              const CellEvidence& evidence) {
  const Verdict& verdict = evidence.verdict;
  Page page;
  page.path = run.PageOf(cell);
  const std::string title = CellTitle(cell);
  page.title = absl::StrCat(cell.verdict ? Name(verdict.kind) : "not measured", ": ", title);
  // "verl-torchtitan 0.9.1 \u00d7 torchtitan main, flex" is the heading; the rest is small print.
  const size_t attention = title.find(", ");
  const size_t rest = attention == std::string::npos ? attention : title.find(", ", attention + 2);
  page.main << Trail(page.path,
                     {{"index.html", "Answer"}, {run.index(), "Run " + run.record().matrix}}, title)
            << Element("h1",
                       {title.substr(0, rest), " ",
                        VerdictBadge(cell.verdict ? std::optional(verdict.kind) : std::nullopt)});
  if (rest != std::string::npos)
    page.main << Element("p", {{"class", "soft"}}, title.substr(rest + 2));
  if (!verdict.message.empty()) page.main << Element("p", {{"class", "lead"}}, verdict.message);
  page.main << Summary(runs, run, cell, evidence) << Heading("How far it came", "ladder")
            << Ladder(evidence) << ExceptionSection(evidence) << AskedSection(cell, evidence);
  const Markup seen = {BackendSection(evidence), MaskSection(evidence), NumbersSection(evidence),
                       StepsSection(evidence), RanksSection(evidence)};
  if (!seen.empty()) page.main << Heading("What was seen", "seen") << seen;
  page.main << WarningsSection(evidence) << AgainSection(run, cell);
  return page;
}

}  // namespace bkm
