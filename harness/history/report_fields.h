// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_REPORT_FIELDS_H_
#define HARNESS_HISTORY_REPORT_FIELDS_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/fields.h"
#include "harness/model/verdict.h"

namespace bkm {

// Fields that several reports of searches share.

// What a search cost.
struct SearchEffort {
  int commits = 0;   // of the searched history, with the older end
  int contents = 0;  // commits that differ in what a cell reads
  int probes = 0;    // outcomes that the search was told
  int measured = 0;  // of the probes, those measured by this command; the others were stored
  double seconds = 0;
};
// "7 trials (6 measured now) over 9 commits (8 distinct contents); 2 s".
std::string EffortText(const SearchEffort& effort);
void DescribeEffort(Fields& fields, SearchEffort& effort);

// A verdict without blame and evidence.
void DescribeVerdict(Fields& fields, Verdict& verdict);

// The report's "schema", which must be 1.
void DescribeSchema(Fields& fields);

// The names of all enumerators up to `last`.
template <typename Enum>
std::vector<std::string> NamesUpTo(Enum last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace_back(Name(static_cast<Enum>(i)));
  return names;
}

// The name of an enumerator up to `last`, or null.
template <typename Enum>
void DescribeName(Fields& fields, const char* key, std::optional<Enum>& value, Enum last) {
  std::optional<std::string> name;
  if (value) name = std::string(Name(*value));
  fields.Field(key, name);
  if (!fields.reading() || !name) return;
  const std::vector<std::string> names = NamesUpTo(last);
  const auto found = std::find(names.begin(), names.end(), *name);
  if (found == names.end())
    return fields.Fail(key, absl::StrCat("unknown name '", *name, "'", DidYouMean(*name, names)));
  value = static_cast<Enum>(found - names.begin());
}

}  // namespace bkm

#endif  // HARNESS_HISTORY_REPORT_FIELDS_H_
