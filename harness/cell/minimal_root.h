// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_MINIMAL_ROOT_H_
#define HARNESS_CELL_MINIMAL_ROOT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A mount that is attached nowhere yet, and where it belongs.
struct Attachment {
  std::filesystem::path path;
  Descriptor tree;
};

enum class ProcView {
  kWhole,
  kHidden,  // read-only, and without what tells of the machine
  // The same, but a process may write to its own folder: CUDA's library names its threads there
  // (/proc/self/task/N/comm), and does not start where it cannot.
  kHiddenForGpu,
};

// A root folder of our own making, for a process in its own mount namespace: an empty file system
// in memory to which mounts are attached. Clone what the root needs from the old one before
// Create(), which covers /tmp.
class MinimalRoot {
 public:
  static absl::StatusOr<MinimalRoot> Create();

  absl::Status Folder(const std::filesystem::path& path) const;
  absl::Status File(const std::filesystem::path& path, absl::string_view content) const;
  absl::Status Link(const std::filesystem::path& path, const std::string& target) const;
  absl::Status Attach(const Attachment& attachment) const;
  // In path order, so that what is inside another attachment comes after it.
  absl::Status AttachAll(std::vector<Attachment> attachments) const;
  // A /proc of the process namespace.
  absl::Status Proc(ProcView view) const;

  // Makes it this process's root, read-only, and lets go of the old one.
  absl::Status Enter() const;

 private:
  explicit MinimalRoot(std::filesystem::path at) : at_(std::move(at)) {}
  // Where a path of the new root lies before Enter().
  std::filesystem::path Here(const std::filesystem::path& path) const;

  std::filesystem::path at_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_MINIMAL_ROOT_H_
