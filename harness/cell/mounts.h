// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_MOUNTS_H_
#define HARNESS_CELL_MOUNTS_H_

#include <filesystem>
#include <vector>

#include "absl/status/status.h"

namespace bkm {

// The folders of one cell. All paths are absolute.
struct CellView {
  std::filesystem::path dir;                    // read-only, except:
  std::vector<std::filesystem::path> writable;  // below dir
  std::vector<std::filesystem::path> reads;     // stay visible, also below /tmp and /dev/shm
};

// Moves this process into a mount namespace in which all file systems are read-only except
// `view.writable`, and /tmp and /dev/shm are small, empty and private. `own_proc`: also mounts a
// /proc of the current process namespace.
absl::Status EnterMounts(const CellView& view, bool own_proc);

}  // namespace bkm

#endif  // HARNESS_CELL_MOUNTS_H_
