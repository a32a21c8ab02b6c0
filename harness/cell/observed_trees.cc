// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/observed_trees.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/cell/mount_tree.h"

namespace bkm {
namespace {

// harness/source/closure.cc reads this version only.
constexpr int kVersion = 1;

std::vector<std::string> Union(const std::vector<std::string>& a,
                               const std::vector<std::string>& b) {
  std::vector<std::string> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

TreeRecord Joined(std::vector<TreeRecord> records) {
  TreeRecord all;
  for (const TreeRecord& record : records) {
    all.read = Union(all.read, record.read);
    all.lookups = Union(all.lookups, record.lookups);
    all.asked = Union(all.asked, record.asked);
    all.complete &= record.complete;
    all.exhausted |= record.exhausted;
  }
  return all;
}

absl::StatusOr<Descriptor> ObservedTrees::Open(const std::string& cell, const std::string& subject,
                                               const std::filesystem::path& tree) {
  absl::StatusOr<std::unique_ptr<TreeView>> view = TreeView::Serve(tree, limits_);
  if (view.ok()) {
    Descriptor mount = (*view)->TakeMount();
    cells_[cell][subject].push_back(*std::move(view));
    return mount;
  }
  if (!std::exchange(warned_, true)) {
    std::cerr << "cell_worker: cannot observe what cells read: " << view.status().message()
              << "; their results are reused for equal trees only\n";
  }
  cells_[cell][subject].push_back(nullptr);
  return OpenMountTree(tree, Access::kRead);
}

TreeUse ObservedTrees::End(const std::string& cell) {
  const auto found = cells_.find(cell);
  if (found == cells_.end()) return {};
  const Views subjects = std::move(found->second);
  cells_.erase(found);
  Json observed = {{"observer", "fuse"}, {"version", kVersion}};
  bool complete = true;
  std::string overrun;
  for (const auto& [subject, views] : subjects) {
    std::vector<TreeRecord> records;
    for (const std::unique_ptr<TreeView>& view : views) {
      if (!view) return {};
      records.push_back(view->Stop());
    }
    const TreeRecord record = Joined(std::move(records));
    complete &= record.complete;
    if (record.exhausted) {
      overrun = absl::StrCat("it asked more than ", limits_.most_questions,
                             " questions about the files of its ", subject);
    }
    observed[subject] = ToJson(record);
  }
  observed["complete"] = complete;
  return {.observed = std::move(observed), .overrun = std::move(overrun)};
}

}  // namespace bkm
