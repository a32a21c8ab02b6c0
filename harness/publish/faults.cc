// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/faults.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/cell.h"
#include "harness/model/dimension.h"
#include "harness/publish/layouts.h"

namespace bkm {
namespace {

// All that a probe asks for.
Condition AskedOf(const Probe& probe) {
  const Cell cell{.probe = probe};
  Condition asked;
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.field != nullptr) asked[dimension.name] = dimension.text(cell);
  }
  return asked;
}

bool AgreesWith(const Condition& asked, const Condition& condition) {
  return std::all_of(condition.begin(), condition.end(),
                     [&](const auto& part) { return asked.at(part.first) == part.second; });
}

// The least that a probe has and that no right probe has altogether: what is at its default is left
// out first, then what every cell has (attention, precision, model), as far as no right probe
// agrees with the rest.
Condition ConditionOf(const Condition& red, const std::vector<Condition>& right) {
  std::vector<const Dimension*> order;
  const auto add = [&](auto is_next) {
    for (const Dimension& dimension : Dimensions()) {
      const bool is_known = std::find(order.begin(), order.end(), &dimension) != order.end();
      if (dimension.field != nullptr && !is_known && is_next(dimension))
        order.push_back(&dimension);
    }
  };
  add([&](const Dimension& dimension) {
    return dimension.use != DimensionUse::kMain && red.at(dimension.name) == dimension.default_text;
  });
  add([](const Dimension& dimension) { return dimension.use == DimensionUse::kDetail; });
  add([](const Dimension& dimension) { return dimension.use == DimensionUse::kMain; });
  add([](const Dimension&) { return true; });
  Condition condition = red;
  for (const Dimension* dimension : order) {
    Condition wider = condition;
    wider.erase(dimension->name);
    const bool is_right = std::any_of(right.begin(), right.end(), [&](const Condition& other) {
      return AgreesWith(other, wider);
    });
    if (!is_right) condition = std::move(wider);
  }
  return condition;
}

}  // namespace

std::string FaultVerdict(const PublishedCell& cell) {
  return absl::StrCat(cell.flaky ? "flaky: " : "", ShortText(cell.evidence.verdict));
}

std::vector<RowFault> FaultsOf(const std::vector<const PublishedCell*>& cells) {
  std::vector<Condition> right;
  for (const PublishedCell* cell : cells) {
    if (IsOk(*cell)) right.push_back(AskedOf(cell->probe));
  }
  std::vector<RowFault> faults;
  std::set<std::pair<std::string, Condition>> known;
  for (const PublishedCell* cell : cells) {
    const Verdict& verdict = cell->evidence.verdict;
    if (IsOk(*cell) || !SaysSomething(verdict)) continue;
    Condition condition = ConditionOf(AskedOf(cell->probe), right);
    if (!known.emplace(FaultVerdict(*cell), condition).second) continue;
    faults.push_back(
        {cell, verdict.kind == VerdictKind::kWrong || cell->flaky, std::move(condition)});
  }
  std::stable_sort(faults.begin(), faults.end(), [](const RowFault& a, const RowFault& b) {
    return std::pair(!a.is_silent, a.condition.size()) <
           std::pair(!b.is_silent, b.condition.size());
  });
  return faults;
}

std::string ConditionText(const Condition& condition) {
  if (condition.empty()) return "always";
  return absl::StrJoin(condition, ", ", [](std::string* out, const auto& part) {
    const Dimension* dimension = FindDimension(part.first);
    const bool is_default = dimension != nullptr && dimension->default_text == part.second &&
                            dimension->use != DimensionUse::kMain;
    absl::StrAppend(out, is_default ? absl::StrCat("default ", part.first)
                                    : absl::StrCat(part.first, "=", part.second));
  });
}

std::vector<std::string> DistinctionsOf(const std::vector<const PublishedCell*>& cells) {
  std::vector<Condition> asked;
  for (const PublishedCell* cell : cells) asked.push_back(AskedOf(cell->probe));
  std::vector<std::string> texts;
  for (const Condition& own : asked) {
    Condition different;
    for (const auto& [name, text] : own) {
      const bool is_shared = std::all_of(asked.begin(), asked.end(), [&](const Condition& other) {
        return other.at(name) == text;
      });
      if (!is_shared) different[name] = text;
    }
    texts.push_back(different.empty() ? "" : ConditionText(different));
  }
  return texts;
}

KnownBadList KnownBadOf(const PublishedTable& table) {
  KnownBadList list{.date = table.date};
  for (const PublishedRow& row : table.rows) {
    std::vector<std::string> versions;
    for (const PublishedVersion& version : row.library_versions)
      versions.push_back(version.subject);
    for (RowFault& fault : FaultsOf(CellsByProbe(row))) {
      const Verdict& verdict = fault.cell->evidence.verdict;
      list.known_bad.push_back(
          {.row = row.id,
           .engine = row.engine,
           .engine_version = row.engine_version.subject,
           .library_versions = versions,
           .torch = row.torch,
           .device = row.device,
           .verdict = fault.cell->flaky ? "flaky" : std::string(Name(verdict.kind)),
           .stage = std::string(Name(verdict.stage)),
           .reason = verdict.reason,
           .message = verdict.message,
           .is_silent = fault.is_silent,
           .condition = std::move(fault.condition),
           .measured = fault.cell->evidence.measured});
    }
  }
  return list;
}

void Describe(Fields& fields, KnownBad& bad) {
  fields.Field("row", bad.row);
  fields.Field("engine", bad.engine);
  fields.Field("engine_version", bad.engine_version);
  fields.Field("library_versions", bad.library_versions);
  fields.Field("torch", bad.torch);
  fields.Field("device", bad.device);
  fields.Field("verdict", bad.verdict);
  fields.Field("stage", bad.stage);
  fields.Field("reason", bad.reason);
  fields.Field("message", bad.message);
  fields.Field("silent", bad.is_silent);
  fields.Field("condition", bad.condition);
  fields.Field("measured", bad.measured);
}

void Describe(Fields& fields, KnownBadList& list) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
  fields.Field("date", list.date);
  fields.Field("known_bad", list.known_bad);
}

OrderedJson ToJson(const KnownBadList& list) { return WriteFields(list); }

}  // namespace bkm
