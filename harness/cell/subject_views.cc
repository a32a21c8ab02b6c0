// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/subject_views.h"

#include "harness/cell/mount_tree.h"

namespace bkm {

absl::StatusOr<Descriptor> PlainSubjectViews::Open(const std::string&, const std::string&,
                                                   const std::filesystem::path& tree) {
  return OpenMountTree(tree, Access::kRead);
}

TreeUse PlainSubjectViews::End(const std::string&) { return {}; }

}  // namespace bkm
