// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_INTERPRETER_H_
#define HARNESS_RUNTIME_INTERPRETER_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// The version and the packages of a Python interpreter.
struct InterpreterFacts {
  std::string python;                           // "3.11.2"
  std::filesystem::path program;                // itself, where it was named by a script (pyenv)
  std::map<std::string, std::string> packages;  // normalised name -> version
};
// Runs no code of the environment's packages, not even that of .pth files. FailedPrecondition when
// `python` does not run, or cannot run cells (harness/base/supported_python.h).
absl::StatusOr<InterpreterFacts> ReadInterpreter(const std::filesystem::path& python);

// What an installed distribution says of itself.
struct DistributionFacts {
  std::string name;  // normalised
  std::string version;
  std::string metadata;  // the lines of its METADATA that concern name, version and requirements
};
// Of every distribution of the interpreter. Runs none of their code.
absl::StatusOr<std::vector<DistributionFacts>> ReadDistributions(
    const std::filesystem::path& python);

// "3.11" for "3.11.2".
std::string MinorVersion(const std::string& version);

// A package that the interpreter can import.
struct InstalledPackage {
  std::string package;           // import name
  std::string version;           // empty: a folder on the path, not an installed distribution
  std::string commit;            // 40 hex digits if installed from git; otherwise empty
  std::filesystem::path folder;  // the folder that contains the package
};
// Those of `packages` (import names) that the interpreter has. Runs no code of any package; of
// editable installations, those with path lines, setuptools' finder, or a package in their tree (or
// its src folder) are found.
absl::StatusOr<std::vector<InstalledPackage>> ReadInstalled(
    const std::filesystem::path& python, const std::vector<std::string>& packages);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_INTERPRETER_H_
