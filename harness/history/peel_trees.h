// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_TREES_H_
#define HARNESS_HISTORY_PEEL_TREES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/runner/preparation.h"
#include "harness/search/history_axis.h"
#include "harness/search/peel.h"
#include "harness/source/tree_patcher.h"

namespace bkm {

// Variants of the library's package at the commits of its axis, without some culprits. git makes
// them and names them by their ids; the cache keeps them.
class PeelTrees {
 public:
  static absl::StatusOr<PeelTrees> Open(const HistoryAxis& axis, Preparation& preparation);

  // The package at `commit` without those of `removed` that lie before it. NotFound, with the
  // reason, where one cannot be taken out.
  absl::StatusOr<std::string> Without(const std::vector<Removed>& removed, int commit) const;
  // The folder in the cache that holds the tree.
  absl::StatusOr<std::filesystem::path> FolderOf(const std::string& tree) const;

 private:
  PeelTrees(const HistoryAxis& axis, TreePatcher patcher, std::string package)
      : axis_(axis), patcher_(std::move(patcher)), package_(std::move(package)) {}

  absl::StatusOr<std::string> TakeOut(const std::string& tree, const Removed& removed) const;
  absl::StatusOr<std::string> WithOlderModules(std::string tree, const Removed& removed) const;
  absl::StatusOr<std::string> WithStubs(std::string tree, const Removed& removed) const;

  const HistoryAxis& axis_;
  const TreePatcher patcher_;
  const std::string package_;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_TREES_H_
