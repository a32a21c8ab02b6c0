// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_trees.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/apicheck/stub.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/store/folder_cache.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::string Listed(const std::vector<std::string>& files) {
  constexpr size_t kMost = 3;
  const std::vector<std::string> first(files.begin(),
                                       files.begin() + std::min(kMost, files.size()));
  return absl::StrCat(
      absl::StrJoin(first, ", "),
      files.size() > kMost ? absl::StrCat(" and ", files.size() - kMost, " more") : "");
}

ReadSource ReaderOf(const TreePatcher& patcher, const std::string& tree) {
  return [&patcher, tree](const std::string& path) { return patcher.Read(tree, path); };
}

}  // namespace

absl::StatusOr<PeelTrees> PeelTrees::Open(const HistoryAxis& axis, Preparation& preparation) {
  const std::string& source = axis.SourceAt(axis.late());
  const std::string package = preparation.catalog().Find(source)->package;
  ASSIGN_OR_RETURN(const GitRepository repository, preparation.git().Open(source));
  ASSIGN_OR_RETURN(const auto above, repository.ObjectId(axis.CommitAt(axis.late()).id, package));
  return PeelTrees(axis,
                   TreePatcher(repository, above ? package : absl::StrCat("src/", package),
                               CacheDirectory() / "patches" / source),
                   package);
}

absl::StatusOr<std::string> PeelTrees::WithOlderModules(std::string tree,
                                                        const Removed& removed) const {
  ASSIGN_OR_RETURN(const auto before,
                   patcher_.TreeAt(absl::StrCat(axis_.CommitAt(removed.commit).id, "^1")));
  if (!before) return absl::NotFoundError("its parent commit lacks the package");
  for (const Violation& broken : removed.breaks) {
    const std::string name = broken.asked.substr(0, broken.asked.find('('));
    ASSIGN_OR_RETURN(const auto source, FindNamedSource(name, ReaderOf(patcher_, *before)));
    std::vector<std::string> paths;
    if (source) paths.push_back(source->path);
    // "torchtitan/components/optimizer.py:102": the library's side of the break.
    const std::string file = broken.where.substr(0, broken.where.find(':'));
    if (absl::StartsWith(file, package_ + "/")) paths.push_back(file.substr(package_.size() + 1));
    if (paths.empty()) return absl::NotFoundError("the sources name no module of the library");
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(const auto text, patcher_.Read(*before, path));
      if (!text) continue;
      ASSIGN_OR_RETURN(tree, patcher_.Write(tree, path, text));
    }
  }
  return tree;
}

absl::StatusOr<std::string> PeelTrees::WithStubs(std::string tree, const Removed& removed) const {
  for (const Violation& broken : removed.breaks) {
    ASSIGN_OR_RETURN(const auto stub, MakeStub(broken, ReaderOf(patcher_, tree)));
    if (!stub) return absl::NotFoundError(absl::StrCat("no stub is possible for ", broken.asked));
    ASSIGN_OR_RETURN(tree, patcher_.Write(tree, stub->path, stub->text));
  }
  return tree;
}

absl::StatusOr<std::string> PeelTrees::TakeOut(const std::string& tree,
                                               const Removed& removed) const {
  if (removed.by == Removal::kOlderModules) return WithOlderModules(tree, removed);
  if (removed.by == Removal::kStub) return WithStubs(tree, removed);
  ASSIGN_OR_RETURN(const TreePatcher::Reverted reverted,
                   patcher_.Revert(tree, axis_.CommitAt(removed.commit).id));
  if (reverted.conflicts.empty() || removed.by == Removal::kOlderFiles) return reverted.tree;
  return absl::NotFoundError(
      absl::StrCat("later changes conflict with it in ", Listed(reverted.conflicts)));
}

absl::StatusOr<std::string> PeelTrees::Without(const std::vector<Removed>& removed,
                                               int commit) const {
  ASSIGN_OR_RETURN(const auto tree, patcher_.TreeAt(axis_.CommitAt(commit).id));
  if (!tree) {
    return absl::NotFoundError(absl::StrCat(axis_.CommitAt(commit).id, " has no ", package_));
  }
  std::vector<Removed> order;
  for (const Removed& one : removed) {
    if (one.commit < 0 || axis_.graph().IsAncestor(one.commit, commit)) order.push_back(one);
  }
  // Revert the newest commit first, as one does by hand; add stubs last.
  std::stable_sort(order.begin(), order.end(), [](const Removed& a, const Removed& b) {
    const bool a_last = a.by == Removal::kStub, b_last = b.by == Removal::kStub;
    return a_last != b_last ? b_last : a.commit > b.commit;
  });
  std::string variant = *tree;
  for (const Removed& one : order) {
    ASSIGN_OR_RETURN(variant, TakeOut(variant, one));
  }
  return variant;
}

absl::StatusOr<fs::path> PeelTrees::FolderOf(const std::string& tree) const {
  return FolderCache(CacheDirectory() / "trees")
      .GetOrMake(absl::StrCat("patched-", tree), [&](const fs::path& folder) {
        return patcher_.Checkout(tree, folder / package_);
      });
}

}  // namespace bkm
