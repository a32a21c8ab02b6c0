// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/model/dimension.h"

namespace bkm {
namespace {

std::string Slug(absl::string_view text) {
  std::string slug;
  for (char c : text)
    slug += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ? c : '-';
  return slug.substr(0, 24);
}

// The error for a pattern that matches no cell.
absl::Status NoSuchValue(const Dimension& key, const std::string& pattern,
                         const std::vector<const Cell*>& cells) {
  constexpr size_t kMostListed = 8;
  std::set<std::string> values, names;
  for (const Cell* cell : cells) {
    const std::string value = key.AskedText(*cell);
    values.insert(value.empty() ? "no value" : value);
    for (std::string& name : key.Texts(*cell)) names.insert(std::move(name));
  }
  const size_t left_out = values.size() - std::min(values.size(), kMostListed);
  values.erase(std::next(values.begin(), values.size() - left_out), values.end());
  // A number is near to most other numbers.
  const bool is_word = pattern.size() > 2;
  const std::string nearest =
      is_word ? DidYouMean(pattern, {names.begin(), names.end()}) : std::string();
  return absl::InvalidArgumentError(absl::StrCat(
      "no cell has ", key.name, " '", pattern, "' (cells have: ", absl::StrJoin(values, ", "),
      left_out > 0 ? absl::StrCat(" and ", left_out, " more") : "", ")",
      absl::StartsWith(nearest, ":") ? nearest : ""));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CellFields(const Cell& cell) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const Dimension& key : Dimensions()) {
    if (!key.IsOmitted(cell)) fields.emplace_back(key.name, key.text(cell));
  }
  return fields;
}

std::string CellId(const Cell& cell) {
  return absl::StrJoin(CellFields(cell), ",", absl::PairFormatter("="));
}

absl::StatusOr<CellFilter> CellFilter::FromPatterns(
    const std::map<std::string, std::string>& patterns) {
  CellFilter filter;
  for (const auto& [name, pattern] : patterns) {
    const Dimension* key = FindDimension(name);
    if (key == nullptr) {
      std::vector<std::string> known;
      for (const Dimension& one : Dimensions()) known.push_back(one.name);
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key '", name, "'", DidYouMean(name, known)));
    }
    filter.patterns_.emplace_back(key, CellPattern(pattern));
  }
  return filter;
}

absl::StatusOr<CellFilter> CellFilter::Parse(absl::string_view text) {
  std::map<std::string, std::string> patterns;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2 || pair[0].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' is not a filter: write key=pattern,key=pattern, for example "
                       "engine=verl-torchtitan,attention=flex"));
    }
    patterns[pair[0]] = pair[1];
  }
  absl::StatusOr<CellFilter> filter = FromPatterns(patterns);
  if (!filter.ok()) return WithContext(filter.status(), absl::StrCat("filter '", text, "'"));
  return filter;
}

bool CellFilter::Matches(const Cell& cell) const {
  return std::all_of(patterns_.begin(), patterns_.end(), [&](const auto& wanted) {
    return wanted.first->Matches(wanted.second, cell);
  });
}

absl::Status CellFilter::CheckValues(const std::vector<const Cell*>& cells) const {
  if (cells.empty()) return absl::OkStatus();
  for (const auto& [key, pattern] : patterns_) {
    if (std::none_of(cells.begin(), cells.end(),
                     [&](const Cell* cell) { return key->Matches(pattern, *cell); }))
      return NoSuchValue(*key, pattern.text(), cells);
  }
  return absl::OkStatus();
}

std::string CellFolderName(const Cell& cell, absl::string_view id) {
  std::vector<std::string> parts = {cell.engine};
  if (cell.engine_subject) parts.push_back(Slug(cell.engine_label));
  if (cell.library_subject)
    parts.push_back(absl::StrCat(cell.library_subject->name, "-", Slug(cell.library_label)));
  parts.push_back(cell.probe.attention);
  if (!cell.plant.empty()) parts.push_back(Slug(absl::StrJoin(cell.plant, "+")));
  parts.push_back(Sha256(id).substr(0, 8));
  return absl::StrJoin(parts, "-");
}

std::string CellDirectory(const Cell& cell, absl::string_view id) {
  return absl::StrCat("cells/", CellFolderName(cell, id));
}

}  // namespace bkm
