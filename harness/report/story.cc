// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/story.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/base/json_facts.h"
#include "harness/judge/mask_check.h"
#include "harness/report/attention_story.h"
#include "harness/report/labels.h"
#include "harness/report/numbers_story.h"
#include "harness/report/rank_story.h"

namespace bkm {
namespace {

constexpr size_t kItemsShown = 8;

std::string Scalar(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return absl::StrFormat("%.4g", value.get<double>());
  return ToLine(value);
}

// `value` as indented lines "name: value"; long lists are cut.
void AppendTree(std::string& out, const std::string& name, const Json& value, int depth) {
  const std::string indent(2 * depth, ' ');
  if (value.is_object()) {
    absl::StrAppend(&out, indent, name, ":\n");
    size_t shown = 0;
    for (const auto& [key, child] : value.items()) {
      if (shown++ == 4 * kItemsShown) {
        absl::StrAppend(&out, indent, "  and ", value.size() - shown + 1, " more\n");
        break;
      }
      AppendTree(out, key, child, depth + 1);
    }
  } else if (value.is_array() && !value.empty() && value[0].is_structured()) {
    absl::StrAppend(&out, indent, name, ":\n");
    for (size_t i = 0; i < value.size() && i < kItemsShown; ++i)
      AppendTree(out, absl::StrCat("[", i, "]"), value[i], depth + 1);
    if (value.size() > kItemsShown)
      absl::StrAppend(&out, indent, "  and ", value.size() - kItemsShown, " more\n");
  } else if (value.is_array()) {
    std::vector<std::string> items;
    for (size_t i = 0; i < value.size() && i < 2 * kItemsShown; ++i)
      items.push_back(Scalar(value[i]));
    if (value.size() > items.size()) items.push_back(absl::StrCat("... (", value.size(), ")"));
    absl::StrAppend(&out, indent, name, ": ", absl::StrJoin(items, ", "), "\n");
  } else {
    absl::StrAppend(&out, indent, name, ": ", Scalar(value), "\n");
  }
}

void AppendStages(std::string& out, const Json& observation) {
  if (MemberOf(observation, "stages").is_null()) return;
  absl::StrAppend(&out, "Stages\n");
  for (const Json& stage : ListOf(observation, "stages")) {
    const std::optional<double> seconds = FiniteOf(stage, "seconds");
    absl::StrAppend(&out, "  ", TextOf(stage, "stage"),
                    seconds ? absl::StrFormat("  %.2f s", *seconds) : std::string("  ended inside"),
                    "\n");
  }
  const Json& ending = ObjectOf(observation, "ending");
  absl::StrAppend(&out, "  ending: ", TextOf(ending, "kind", "unknown"));
  for (const char* key : {"code", "signal", "limit", "message"}) {
    if (ending.contains(key)) absl::StrAppend(&out, ", ", key, " ", Scalar(ending[key]));
  }
  absl::StrAppend(&out, "\n");
}

// Every claim that failed, with its places: the worst first.
void AppendFailures(std::string& out, const Verdict& verdict) {
  constexpr size_t kMostPlaces = 12;
  const std::span<const Finding> failures = verdict.Failed();
  if (failures.empty()) return;
  absl::StrAppend(&out, "\nFails, what explains most first\n");
  for (const Finding& failed : failures) {
    const std::vector<FailedPlace>& places = failed.places;
    absl::StrAppend(&out, "  ", failed.claim, " at ", Name(failed.stage), " (", failed.reason,
                    "): ", failed.message, "\n");
    if (places.size() < 2) continue;  // the message says it
    for (size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i) {
      const std::optional<double> size = places[i].size;
      absl::StrAppend(&out, "    ", places[i].where, ": ", places[i].what,
                      size ? absl::StrFormat(" (size %.4g)", *size) : std::string(), "\n");
    }
    if (places.size() > kMostPlaces)
      absl::StrAppend(&out, "    and ", places.size() - kMostPlaces,
                      " more places (verdict.json has them)\n");
  }
}

void AppendException(std::string& out, const Json& exception, const char* title) {
  absl::StrAppend(&out, title, " ", TextOf(exception, "type"), ": ", TextOf(exception, "message"),
                  "\n");
  for (const Json& frame : ListOf(exception, "frames")) {
    // Frames of Python's import machinery have no source.
    if (absl::StartsWith(TextOf(frame, "file"), "<frozen")) continue;
    absl::StrAppend(&out, "  ", TextOf(frame, "owner"), "  ", TextOf(frame, "file"), ":",
                    WholeOf(frame, "line").value_or(0), " in ", TextOf(frame, "function"),
                    "\n      ", TextOf(frame, "text"), "\n");
  }
  if (MemberOf(exception, "cause").is_object())
    AppendException(out, exception["cause"], "Caused by");
}

void AppendWitnesses(std::string& out, const Json& observation, const Verdict& verdict) {
  absl::StrAppend(&out, AttentionStory(observation, FactsOf<MaskFacts>(verdict.Find("mask"))));
  for (const char* key : {"shims", "sandbox"}) {
    if (observation.contains(key)) AppendTree(out, key, observation[key], 1);
  }
  const Json& steps = ListOf(observation, "steps");
  for (size_t i = 0; i < steps.size(); ++i) {
    absl::StrAppend(&out, "  step ", i, ": loss ", Scalar(MemberOf(steps[i], "loss")),
                    ", gradient norm ", Scalar(MemberOf(steps[i], "grad_norm")), ", learning rate ",
                    Scalar(MemberOf(steps[i], "learning_rate")), "\n");
  }
}

// The evidence without what the sections above say.
Json NotShownYet(Verdict verdict) {
  for (Finding& finding : verdict.findings) {
    if (finding.claim != "mask") continue;
    finding.facts.erase("layers");
    finding.facts.erase("picture");
  }
  Json evidence = EvidenceOf(verdict);
  evidence.erase("failures");
  return evidence;
}

}  // namespace

std::string StoryText(const CellRecord& cell, const Json& observation, const Verdict& verdict) {
  std::string out =
      absl::StrCat(CellLabel(cell),
                   cell.role == CellRole::kControl ? " (control)"
                   : cell.role == CellRole::kTwin  ? " (a twin: without an engine option)"
                                                   : "",
                   "\n", cell.id, "\n\n");
  absl::StrAppend(&out, "Verdict\n  ", Name(verdict.kind), " at ", Name(verdict.stage),
                  verdict.reason.empty() ? "" : absl::StrCat(" (", verdict.reason, ")"), "\n");
  if (!verdict.message.empty()) absl::StrAppend(&out, "  ", verdict.message, "\n");
  if (!verdict.blame.empty())
    absl::StrAppend(&out, "  blame: ", absl::StrJoin(verdict.blame, ", "), "\n");
  AppendFailures(out, verdict);
  if (!verdict.effects.empty())
    absl::StrAppend(&out, "\nEngine options, against the cell without\n");
  for (const OptionEffect& effect : verdict.effects)
    absl::StrAppend(&out, "  ", effect.option, ": ",
                    effect.kind == EffectKind::kNotObserved ? "accepted, effect not observed"
                                                            : Name(effect.kind),
                    effect.seen.empty() ? "" : ": ", effect.seen, "\n");
  absl::StrAppend(&out, "\nRequest\n");
  if (cell.cell.engine_subject) {
    absl::StrAppend(&out, "  engine  ", cell.cell.engine, " ",
                    VersionText(cell.cell.engine_label, cell.cell.engine_subject, cell.engine_date),
                    "\n");
  }
  absl::StrAppend(&out, "  library ", LibraryText(cell), "\n  runtime ", cell.cell.runtime,
                  cell.cell.torch.empty() ? "" : absl::StrCat(", torch ", cell.cell.torch),
                  ", lock ", cell.lock.substr(0, 12), "\n\n");
  if (cell.inherited_from)
    absl::StrAppend(&out, "Observation reused from ", *cell.inherited_from, "\n\n");
  if (!observation.is_object()) {
    absl::StrAppend(&out, cell.verdict ? "What it observed cannot be shown: the verdict says why.\n"
                                       : "Not measured yet.\n");
    return Printable(std::move(out));
  }
  AppendStages(out, observation);
  if (MemberOf(observation, "exception").is_object()) {
    absl::StrAppend(&out, "\n");
    AppendException(out, observation["exception"], "Stopped by");
  }
  absl::StrAppend(&out, "\nObserved\n");
  AppendWitnesses(out, observation, verdict);
  if (const std::string ranks = RankStory(observation); !ranks.empty())
    absl::StrAppend(&out, "\nRanks\n", ranks);
  if (const std::string numbers = NumbersStory(verdict); !numbers.empty())
    absl::StrAppend(&out, "\nNumbers, against the fp64 golden\n", numbers);
  if (const Json rest = NotShownYet(verdict); !rest.empty()) {
    absl::StrAppend(&out, "\n");
    AppendTree(out, "Judged", rest, 0);
  }
  return Printable(std::move(out));
}

}  // namespace bkm
