// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_MOUNTS_H_
#define HARNESS_CELL_MOUNTS_H_

#include <filesystem>
#include <vector>

#include "absl/status/status.h"

namespace bkm {

// The folders of one cell, absolute.
struct CellView {
  std::filesystem::path dir;                    // read-only, except:
  std::vector<std::filesystem::path> writable;  // below dir
  std::vector<std::filesystem::path> reads;     // stay in sight also below /tmp and /dev/shm
};

// Moves this process into a mount namespace where every file system is read-only except
// `view.writable`, and /tmp and /dev/shm are small, empty and its own. `own_proc`: mount a /proc of
// the current process namespace.
absl::Status EnterMounts(const CellView& view, bool own_proc);

}  // namespace bkm

#endif  // HARNESS_CELL_MOUNTS_H_
