// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/named_commit.h"

#include "absl/strings/str_cat.h"

namespace bkm {

std::string ToText(const NamedCommit& commit, bool with_title) {
  return absl::StrCat(commit.source, " ", commit.id.substr(0, 9), " (", commit.date,
                      commit.pull_request ? absl::StrCat(", #", *commit.pull_request) : "", ")",
                      with_title ? absl::StrCat(" ", commit.title) : "");
}

void Describe(Fields& fields, NamedCommit& commit) {
  fields.Field("source", commit.source);
  fields.Field("commit", commit.id);
  fields.Field("date", commit.date);
  fields.Field("title", commit.title);
  fields.Field("pull_request", commit.pull_request);
}

}  // namespace bkm
