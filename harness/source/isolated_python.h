// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_ISOLATED_PYTHON_H_
#define HARNESS_SOURCE_ISOLATED_PYTHON_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace bkm {

// A Python program of ours, given as its text. It runs without the current folder, the user's
// variables and site-packages (whose .pth files may run code), with an environment of its own.
Command IsolatedPython(const std::filesystem::path& python, const std::string& program,
                       const std::vector<std::string>& arguments = {});

}  // namespace bkm

#endif  // HARNESS_SOURCE_ISOLATED_PYTHON_H_
