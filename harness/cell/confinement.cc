// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/confinement.h"

#include <algorithm>
#include <set>

#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cell/system_view.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// A folder that the worker's root makes itself and that its cells share. /dev is none: each cell
// has its own, where those that ask for a GPU get more devices than the others.
constexpr const char* kMade = "/etc";

absl::Status Attach(Confinement& confinement, const fs::path& path, Access access) {
  const bool there = std::any_of(confinement.attachments.begin(), confinement.attachments.end(),
                                 [&](const Attachment& one) { return one.path == path; });
  if (there) return absl::OkStatus();
  ASSIGN_OR_RETURN(Descriptor tree, OpenMountTree(path, access));
  confinement.attachments.push_back({path, std::move(tree)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Confinement> SystemConfinement(const CellUsers& users) {
  Confinement confinement{.users = users};
  const SystemView view = FindSystemView();
  for (const fs::path& path : view.reads) RETURN_IF_ERROR(Attach(confinement, path, Access::kRead));
  for (const fs::path& path : view.devices)
    RETURN_IF_ERROR(Attach(confinement, path, Access::kDevice));
  confinement.links = view.links;
  for (const auto& [name, target] :
       {std::pair("fd", "/proc/self/fd"), std::pair("stdin", "/proc/self/fd/0"),
        std::pair("stdout", "/proc/self/fd/1"), std::pair("stderr", "/proc/self/fd/2")})
    confinement.links.emplace_back(fs::path("/dev") / name, target);
  confinement.files = MadeUpFiles(CellUsers::kFirstInside, users.count + 1);
  return confinement;
}

absl::Status AddPath(Confinement& confinement, const fs::path& path, Access access) {
  for (const fs::path& spelling : Spellings(path)) {
    // A link of the root, such as /lib, leads to what is there.
    const bool linked =
        std::any_of(confinement.links.begin(), confinement.links.end(),
                    [&](const auto& link) { return IsAtOrBelow(spelling, link.first); });
    if (!linked) RETURN_IF_ERROR(Attach(confinement, spelling, access));
  }
  return absl::OkStatus();
}

Sandbox SharedWithCells(const Confinement& confinement) {
  std::set<fs::path> shared = {kMade};
  for (const Attachment& one : confinement.attachments) {
    if (!IsAtOrBelow(one.path, kMade)) shared.insert(one.path);
  }
  return {.level = SandboxLevel::kFull,
          .shared = {shared.begin(), shared.end()},
          .links = confinement.links};
}

}  // namespace bkm
