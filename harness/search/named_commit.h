// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_NAMED_COMMIT_H_
#define HARNESS_SEARCH_NAMED_COMMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "harness/base/fields.h"

namespace bkm {

// A commit as logs, summaries and reports name it.
struct NamedCommit {
  std::string source;  // "torchtitan"
  std::string id;      // 40 hex digits
  std::string date;    // YYYY-MM-DD
  std::string title;
  std::optional<int64_t> pull_request;  // absent: the title names none
  bool operator==(const NamedCommit&) const = default;
};
// "torchtitan 1944dc9ab (2026-04-01, #2345) Transpose it back".
std::string ToText(const NamedCommit& commit, bool with_title = true);
void Describe(Fields& fields, NamedCommit& commit);

}  // namespace bkm

#endif  // HARNESS_SEARCH_NAMED_COMMIT_H_
