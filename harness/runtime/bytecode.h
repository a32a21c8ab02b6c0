// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_BYTECODE_H_
#define HARNESS_RUNTIME_BYTECODE_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace bkm {

// Hard-links compiled Python from `sibling` into `site` (two site-packages folders) wherever both
// have the same source file, which is itself a hard link, as made by installers that link from one
// cache. Two environments share most packages; linking takes a tenth of the time of compiling, and
// no space. `python` is the version, such as "3.11". Returns the number of linked files.
int64_t LinkBytecode(const std::filesystem::path& sibling, const std::filesystem::path& site,
                     const std::string& python);

// Compiles the files below `site` that are not compiled yet. Skips files that do not compile: an
// import of such a file reports the error. `python` is the interpreter that the environment of
// `site` was made from, and not the environment's own, which would run the .pth files of its
// packages.
absl::Status CompileBytecode(const std::filesystem::path& python,
                             const std::filesystem::path& site);

// Whether `package`, a folder with an __init__.py, has bytecode of the version `python` ("3.11")
// beside its sources.
bool HasBytecode(const std::filesystem::path& package, const std::string& python);

// Like CompileBytecode, but writes the compiled files below `elsewhere`, in the layout of
// PYTHONPYCACHEPREFIX.
absl::Status CompileBytecodeElsewhere(const std::filesystem::path& python,
                                      const std::filesystem::path& folder,
                                      const std::filesystem::path& elsewhere);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_BYTECODE_H_
