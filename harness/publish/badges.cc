// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/badges.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/publish/rows.h"

namespace bkm {
namespace {

OrderedJson Badge(const std::string& label, const std::string& message, const char* color) {
  return {{"schemaVersion", 1}, {"label", label}, {"message", message}, {"color", color}};
}

const char* ColorOf(RowStatus status) {
  switch (status) {
    case RowStatus::kWorks:
      return "brightgreen";
    case RowStatus::kWorksExcept:
      return "yellow";
    case RowStatus::kFails:
      return "red";
    case RowStatus::kUnknown:
      return "lightgrey";
  }
  return "lightgrey";
}

std::string PairText(const PublishedRow& row) {
  const std::string library = absl::StrCat(row.library, " ", ShortLabel(row.library_to));
  return HasEngine(row) ? absl::StrCat(ShortLabel(row.engine_version), " x ", library) : library;
}

// Rows are sorted newest first.
OrderedJson EngineBadge(const PublishedTable& table, const std::string& engine) {
  bool any_fails = false;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != engine || IsExpired(row, table.date)) continue;
    if (Works(row)) return Badge(engine, PairText(row), ColorOf(row.status));
    any_fails = any_fails || row.status == RowStatus::kFails;
  }
  return any_fails ? Badge(engine, "no pair works", "red") : Badge(engine, "unknown", "lightgrey");
}

}  // namespace

std::map<std::string, OrderedJson> Badges(const PublishedTable& table) {
  std::map<std::string, OrderedJson> badges;
  std::set<std::string> engines;
  for (const PublishedRow& row : table.rows) {
    engines.insert(row.engine);
    const std::string label = absl::StrCat(row.engine, " ", PairText(row));
    badges[absl::StrCat(row.id, ".json")] =
        IsExpired(row, table.date)
            ? Badge(label, "expired", "lightgrey")
            : Badge(label, std::string(Name(row.status)), ColorOf(row.status));
  }
  for (const std::string& engine : engines)
    badges[absl::StrCat(engine, ".json")] = EngineBadge(table, engine);
  return badges;
}

}  // namespace bkm
