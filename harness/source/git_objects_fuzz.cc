// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// What git cat-file prints of a hostile repository: trees, commits and the lines before them. The
// first byte chooses the length of an object id.
#include <algorithm>

#include "harness/fuzzing/fuzzing.h"
#include "harness/source/git_objects.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace {

void ExpectRulesKept(const std::vector<GitEntry>& entries, size_t hash_size) {
  std::vector<std::string> names;
  for (const GitEntry& entry : entries) {
    HARNESS_CHECK(CheckName(entry.path).ok()) << entry.path;
    HARNESS_CHECK(entry.id.size() == 2 * hash_size) << entry.id;
    names.push_back(entry.path);
  }
  std::sort(names.begin(), names.end());
  HARNESS_CHECK(std::adjacent_find(names.begin(), names.end()) == names.end())
      << "a name occurs twice";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t hash_size = data[0] % 2 ? 32 : 20;
  const absl::string_view content = AsText(data + 1, size - 1);
  const absl::StatusOr<std::vector<GitEntry>> entries = ParseTree(content, hash_size);
  if (entries.ok())
    ExpectRulesKept(*entries, hash_size);
  else
    ExpectUsableError(entries.status(), size);
  const std::optional<std::string> tree = TreeNamedBy(content);
  HARNESS_CHECK(!tree || tree->size() == 40 || tree->size() == 64) << *tree;
  const GitObjectInfo info = ParseObjectInfo(content);
  HARNESS_CHECK(info.id.size() + info.type.size() < size);
  CheckLink("a/b", content).IgnoreError();
  LeavesTree("a/b", content);
  return 0;
}

}  // namespace bkm
