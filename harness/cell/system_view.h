// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SYSTEM_VIEW_H_
#define HARNESS_CELL_SYSTEM_VIEW_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace bkm {

// What a confined process sees of the machine, beside what it is given.
struct SystemView {
  std::vector<std::filesystem::path> reads;  // programs, libraries, what they read of /etc and /sys
  std::vector<std::filesystem::path> devices;                        // harmless ones
  std::vector<std::pair<std::filesystem::path, std::string>> links;  // /bin -> usr/bin
};
SystemView FindSystemView();

// The paths of a machine whose root folder cannot be replaced: the same, by their names.
std::vector<std::filesystem::path> SystemPaths();

// The devices of NVIDIA's driver, and what its library reads of /sys (as one was seen to), for a
// cell that asks for a GPU. `several`: also FindPciDevices().
SystemView FindGpuView(bool several);

// The machine's PCI devices in /sys. gloo lists them and fails where they are there and cannot be
// read; NCCL finds the way from one GPU to another by them (its src/graph/xml.cc).
std::vector<std::filesystem::path> FindPciDevices();

// What an interpreter needs of its prefix, of that of the Python that it was made from, and of the
// folders of libraries that this process has loaded: the interpreter, pyvenv.cfg, the standard
// library with site-packages, shared libraries, headers. Nothing else: the prefix of ~/bin/python3
// is the user's home, and `python -m venv .` makes one of a project's folder. Of a conda
// environment, whose prefix belongs to it alone, the folders that its packages fill.
SystemView FindEnvironmentView(const std::filesystem::path& python);

// `path` as named and, if that differs, as resolved. Empty for a missing path and for the root.
std::vector<std::filesystem::path> Spellings(const std::filesystem::path& path);

// Files that programs look up users and hosts in: (path, content).
std::vector<std::pair<std::filesystem::path, std::string>> MadeUpFiles(unsigned first_user,
                                                                       int users);

}  // namespace bkm

#endif  // HARNESS_CELL_SYSTEM_VIEW_H_
