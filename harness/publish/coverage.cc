// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/coverage.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/numerics/model_shapes.h"
#include "harness/publish/layouts.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// One thing that cells of a row may be asked for.
struct Aspect {
  std::string name;
  std::function<bool(const PublishedCell&)> asked;
  std::function<std::string(const PublishedCell&)> where;  // the rest of the question, in words
  std::string option = "";         // the engine option that must act: "param_offload"
  bool is_told_by_models = false;  // the entries of models name it
};

// The options of a cell without the layout and the documents: "spmd_backend=\"default\"".
std::string FurtherOptions(const PublishedCell& cell) {
  Probe probe = cell.probe;
  probe.layout = Layout();
  probe.documents = DefaultDocuments();
  return OptionsText(probe);
}

std::string WithOptions(const std::string& text, const std::string& options) {
  return options.empty() ? text : absl::StrCat(text, " [", options, "]");
}

std::string ModelAndAttention(const PublishedCell& cell) {
  return absl::StrCat(cell.probe.model, " ", cell.probe.attention);
}

// See PlainCells.
bool IsPlain(const PublishedCell& cell) {
  return LayoutOf(cell) == "1" && FurtherOptions(cell).empty();
}

std::vector<Aspect> AspectsOf(const PublishedRow& row) {
  const EngineKind* kind = FindEngineKind(row.engine);
  std::vector<Aspect> aspects;
  for (const std::string& model : ModelFamilies()) {
    aspects.push_back(
        {absl::StrCat("the model ", model),
         [model](const PublishedCell& cell) { return cell.probe.model == model && IsPlain(cell); },
         [](const PublishedCell& cell) {
           return WithOptions(absl::StrCat(cell.probe.attention, " ", cell.probe.precision),
                              OptionsText(cell.probe));
         }});
  }
  for (const char* precision : {"bf16", "fp32"}) {
    aspects.push_back({precision,
                       [precision](const PublishedCell& cell) {
                         return cell.probe.precision == precision && IsPlain(cell);
                       },
                       ModelAndAttention, "",
                       /*is_told_by_models=*/true});
  }
  for (const Dimension& dimension : Dimensions()) {
    for (const AskedAspect& asked : dimension.aspects) {
      if (asked.of_kind && (kind == nullptr || !asked.of_kind(*kind))) continue;
      aspects.push_back(
          {asked.words,
           [is_asked = asked.is_asked](const PublishedCell& cell) { return is_asked(cell.probe); },
           ModelAndAttention, asked.engine_option});
    }
  }
  std::set<std::string> layouts;
  for (const PublishedCell& cell : row.cells) {
    const std::string layout = LayoutOf(cell);
    if (layout == "1" || !layouts.insert(layout).second) continue;
    aspects.push_back({absl::StrCat("layout ", layout),
                       [layout](const PublishedCell& cell) { return LayoutOf(cell) == layout; },
                       [](const PublishedCell& cell) {
                         return WithOptions(ModelAndAttention(cell), FurtherOptions(cell));
                       }});
  }
  return aspects;
}

// Whether the engine option was accepted, and was not seen to act. Older evidence does not say.
bool IsWithoutEffect(const Verdict& verdict, absl::string_view option) {
  return std::any_of(verdict.effects.begin(), verdict.effects.end(),
                     [&](const OptionEffect& effect) {
                       return effect.option == option && effect.kind != EffectKind::kActs;
                     });
}

// Engine options of right cells that were accepted and not seen to act, or of which nobody knows.
std::vector<std::string> WithoutEffect(const PublishedRow& row) {
  std::set<std::string> options;
  for (const PublishedCell& cell : row.cells) {
    for (const OptionEffect& effect : cell.evidence.verdict.effects) {
      if (!IsOk(cell) || effect.kind == EffectKind::kActs) continue;
      options.insert(absl::StrCat(effect.option, effect.kind == EffectKind::kUnknown
                                                     ? " (accepted, effect unknown)"
                                                     : " (accepted, effect not observed)"));
    }
  }
  return {options.begin(), options.end()};
}

// The kinds of parallelism of the row's engine that no cell measured.
std::vector<std::string> LayoutsNotTested(const PublishedRow& row) {
  const EngineKind* kind = FindEngineKind(row.engine);
  std::vector<const PublishedCell*> cells;
  for (const PublishedCell& cell : row.cells) {
    if (SaysSomething(cell.evidence.verdict)) cells.push_back(&cell);
  }
  const std::vector<std::string> missing = LayoutsNotRun(row.engine, cells);
  if (kind != nullptr && !missing.empty() && missing.size() == kind->layouts.size())
    return {"more than 1 rank"};
  return missing;
}

// What the row's right cells could not have denied: "errors of 100 % in the gradients of 3 of 9
// tensors (gpt_oss, bf16)". A right cell of the same model in fp32 that hides nothing makes up for
// it.
std::vector<std::string> Hidden(const PublishedRow& row) {
  std::set<std::string> seen;
  for (const PublishedCell& cell : row.cells) {
    if (IsOk(cell) && cell.probe.precision == "fp32" && cell.evidence.verdict.blind.empty())
      seen.insert(cell.probe.model);
  }
  std::set<std::string> hidden;
  for (const PublishedCell& cell : row.cells) {
    if (!IsOk(cell) || seen.contains(cell.probe.model)) continue;
    for (const std::string& claim : cell.evidence.verdict.blind)
      hidden.insert(absl::StrCat(claim, " (", cell.probe.model, ", ", cell.probe.precision, ")"));
  }
  return {hidden.begin(), hidden.end()};
}

// "wrong at resume, resume-off".
std::string NotOkText(const PublishedCell& cell) {
  return absl::StrCat(cell.flaky ? "flaky: " : "", ShortText(cell.evidence.verdict));
}

std::string NoGoldenText(const PublishedRow& row, const std::string& model) {
  const EngineKind* kind = FindEngineKind(row.engine);
  if (kind == nullptr) return "";
  const auto it = kind->without_golden.find(model);
  return it == kind->without_golden.end()
             ? ""
             : absl::StrCat(" (bkm cannot judge it: ", it->second, ")");
}

// What the cells of a row say of one aspect.
struct Seen {
  std::vector<std::string> ok;                                        // where
  std::vector<std::pair<std::string, std::vector<std::string>>> bad;  // by verdict: where
  std::set<std::string> models;                                       // of measured cells
  bool is_undecided = false;                                          // by a cell that ran
};

Seen SeenOf(const Aspect& aspect, const std::vector<const PublishedCell*>& cells) {
  Seen seen;
  const auto add = [](std::vector<std::string>& places, std::string place) {
    if (std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(std::move(place));
  };
  for (const PublishedCell* cell : cells) {
    if (!aspect.asked(*cell)) continue;
    const Verdict& verdict = cell->evidence.verdict;
    if (!SaysSomething(verdict)) {
      seen.is_undecided |= verdict.kind == VerdictKind::kUnsupported;
      continue;
    }
    if (IsOk(*cell) && !aspect.option.empty() && IsWithoutEffect(verdict, aspect.option)) continue;
    seen.models.insert(cell->probe.model);
    if (IsOk(*cell)) {
      add(seen.ok, aspect.where(*cell));
      continue;
    }
    const std::string text = NotOkText(*cell);
    auto found = std::find_if(seen.bad.begin(), seen.bad.end(),
                              [&](const auto& entry) { return entry.first == text; });
    if (found == seen.bad.end()) found = seen.bad.insert(found, {text, {}});
    add(found->second, aspect.where(*cell));
  }
  return seen;
}

}  // namespace

std::vector<const PublishedCell*> PlainCells(std::vector<const PublishedCell*> cells) {
  if (std::any_of(cells.begin(), cells.end(), [](const auto* cell) { return IsPlain(*cell); }))
    std::erase_if(cells, [](const PublishedCell* cell) { return !IsPlain(*cell); });
  return cells;
}

Coverage CoverageOf(const PublishedRow& row) {
  Coverage coverage;
  if (!Works(row)) return coverage;
  const std::vector<const PublishedCell*> cells = CellsByProbe(row);
  std::set<std::string> models;  // that the row vouches for
  for (const PublishedCell* cell : cells) {
    if (IsOk(*cell) && IsPlain(*cell)) models.insert(cell->probe.model);
  }
  std::map<std::set<std::string>, std::vector<std::string>> only;  // models -> aspects
  for (const Aspect& aspect : AspectsOf(row)) {
    const Seen seen = SeenOf(aspect, cells);
    const bool is_told = aspect.is_told_by_models;
    if (!seen.ok.empty() && !is_told)
      coverage.ok.push_back(absl::StrCat(aspect.name, " (", absl::StrJoin(seen.ok, ", "), ")"));
    if (!seen.bad.empty() && !is_told) {
      const std::string bad =
          absl::StrJoin(seen.bad, "; ", [](std::string* out, const auto& entry) {
            absl::StrAppend(out, absl::StrJoin(entry.second, ", "), ": ", entry.first);
          });
      coverage.not_ok.push_back(absl::StrCat(aspect.name, " (", bad, ")"));
    }
    const bool is_model = absl::StartsWith(aspect.name, "the model ");
    if (seen.models.empty()) {
      coverage.not_tested.push_back(
          absl::StrCat(aspect.name, seen.is_undecided ? " (unsupported)"
                                    : is_model        ? NoGoldenText(row, aspect.name.substr(10))
                                                      : ""));
    } else if (!is_model && !std::includes(seen.models.begin(), seen.models.end(), models.begin(),
                                           models.end())) {
      only[seen.models].push_back(aspect.name);
    }
  }
  for (const auto& [measured, aspects] : only) {
    coverage.not_tested.push_back(absl::StrCat("with other models than ",
                                               absl::StrJoin(measured, ", "), ": ",
                                               absl::StrJoin(aspects, ", ")));
  }
  const auto add = [&](std::vector<std::string> entries) {
    std::move(entries.begin(), entries.end(), std::back_inserter(coverage.not_tested));
  };
  add(WithoutEffect(row));
  add(Hidden(row));
  add(LayoutsNotTested(row));
  add({"torch.compile"});  // no cell can be asked for it yet
  const EngineKind* kind = FindEngineKind(row.engine);
  const bool is_driven_by_trainer =
      std::any_of(row.cells.begin(), row.cells.end(),
                  [](const PublishedCell& cell) { return cell.probe.drive == "trainer"; });
  if (kind != nullptr && !kind->not_driven.empty() && !is_driven_by_trainer)
    add({kind->not_driven});
  add({row.device == "cpu" ? "a GPU" : "floors of this device (they were measured on a CPU)"});
  return coverage;
}

}  // namespace bkm
