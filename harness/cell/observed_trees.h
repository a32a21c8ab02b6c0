// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_OBSERVED_TREES_H_
#define HARNESS_CELL_OBSERVED_TREES_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/cell/subject_views.h"
#include "harness/cell/tree_view.h"

namespace bkm {

// Shows trees through views that record what a cell looks at. Where the machine has no FUSE, shows
// them as they are, and records nothing.
class ObservedTrees : public SubjectViews {
 public:
  explicit ObservedTrees(TreeViewLimits limits = {}) : limits_(limits) {}

  absl::StatusOr<Descriptor> Open(const std::string& cell, const std::string& subject,
                                  const std::filesystem::path& tree) override;
  // `observed`: {"observer":"fuse","version":1,"complete":true,"engine":{...},"library":{...}}
  TreeUse End(const std::string& cell) override;

 private:
  // By subject. A tree that has two names has two views.
  using Views = std::map<std::string, std::vector<std::unique_ptr<TreeView>>>;

  const TreeViewLimits limits_;
  bool warned_ = false;
  std::map<std::string, Views> cells_;
};

// What several views of one tree recorded.
TreeRecord Joined(std::vector<TreeRecord> records);

}  // namespace bkm

#endif  // HARNESS_CELL_OBSERVED_TREES_H_
