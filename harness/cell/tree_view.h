// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_TREE_VIEW_H_
#define HARNESS_CELL_TREE_VIEW_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/base/json.h"

namespace bkm {

// What the processes of a cell looked at in one tree, as paths below the tree. Every list is sorted
// (harness/protocol/README.md, "observed").
struct TreeRecord {
  std::vector<std::string> read;     // files, links and, with "/" at the end, listed folders
  std::vector<std::string> lookups;  // modules: folder and name
  std::vector<std::string> asked;    // names, found or missing
  bool complete = true;              // false: the record was too long, or the tree is unreadable
  bool exhausted = false;            // more questions than the limit: the view ended early
};

// {"read":[...],"lookups":[...],"asked":[...]}. Names are escaped as in C: they may hold any bytes.
Json ToJson(const TreeRecord& record);

struct TreeViewLimits {
  size_t most_names = 200000;    // in all lists of the record together
  size_t most_bytes = 32 << 20;  // of these names
  // The kernel asks once for each name and piece of a file. Of 300 stored cells with real engines,
  // none looked at more than 634 names.
  size_t most_questions = 200'000;
};

// A read-only view of a folder for one cell: a FUSE file system that this process serves, and that
// records each first access. The kernel caches what it was told, so a later access costs nothing.
//
// The view shows nothing else of the folder than names, kinds, contents, sizes and the executable
// bit: times, owners, inode numbers and link counts are constant or depend on the path alone.
// A listing leaves out "__pycache__". The attribute "user.bkm.module.NAME" of a folder holds the
// forms in which the module NAME is in it, a line for each ("NAME/", "NAME/__init__.py",
// "NAME.py"): it costs one question where the import system would ask for each form.
//
// One thread serves the view, from Serve until Stop or until a limit on questions; then whoever
// uses it gets ENOTCONN. This process must not open files through it.
class TreeView {
 public:
  static absl::StatusOr<std::unique_ptr<TreeView>> Serve(const std::filesystem::path& tree,
                                                         const TreeViewLimits& limits = {});
  ~TreeView();

  // The mount, which is attached nowhere: for move_mount(2), once.
  Descriptor TakeMount();
  // Ends the view and returns the record. Whoever still uses the view then gets ENOTCONN.
  TreeRecord Stop();

 private:
  class Server;
  explicit TreeView(std::unique_ptr<Server> server);

  std::unique_ptr<Server> server_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_TREE_VIEW_H_
