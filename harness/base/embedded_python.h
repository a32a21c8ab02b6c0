// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_EMBEDDED_PYTHON_H_
#define HARNESS_BASE_EMBEDDED_PYTHON_H_

#include <filesystem>
#include <string>

namespace bkm {

// The version of Python that python_worker can embed: "3.11".
std::string EmbeddedPythonVersion();

// The prefix of the interpreter that the virtual environment `prefix` was made from, by its
// pyvenv.cfg. Empty: it is not a virtual environment.
std::filesystem::path BaseOfEnvironment(const std::filesystem::path& prefix);

// libpython of that version, of the interpreter `python` or of the one that its virtual environment
// was made from. Empty: it has none, as where Python is linked statically. Runs nothing, so the
// caller must know that `python` has that version.
std::filesystem::path FindLibpython(const std::filesystem::path& python);

}  // namespace bkm

#endif  // HARNESS_BASE_EMBEDDED_PYTHON_H_
