// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/installation.h"

#include <cstdlib>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/store/file_lock.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

fs::path FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value ? fs::path(value) : fs::path();
}

}  // namespace

absl::StatusOr<Installation> Installation::Find() {
  Installation found{.root = FromEnvironment("BKM_ROOT"), .bin = FromEnvironment("BKM_BIN")};
  std::error_code error;
  if (found.bin.empty()) {
    // <bin>/harness/cli/bkm
    found.bin = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path().parent_path();
  }
  if (found.root.empty()) {
    for (fs::path at = fs::current_path(error); !at.empty(); at = at.parent_path()) {
      if (fs::exists(at / "harness/cell/python", error)) {
        found.root = at;
        break;
      }
      if (at == at.root_path()) break;
    }
  }
  if (!fs::exists(found.python_code(), error) || found.root.empty()) {
    return absl::NotFoundError(
        "cannot find bkm's own files: start it by tools/bkm, or set BKM_ROOT to the checkout");
  }
  return found;
}

absl::StatusOr<bool> Installation::IsBuilding() {
  const fs::path path = FromEnvironment("BKM_BUILDING");
  if (path.empty()) return false;
  ASSIGN_OR_RETURN(const std::optional<FileLock> lock, FileLock::TryAcquire(path));
  if (!lock) return true;
  ASSIGN_OR_RETURN(const std::string end, ReadFile(path));
  if (end == "built\n") return false;
  return absl::FailedPreconditionError(end.empty()
                                           ? "the build was interrupted; the same command continues"
                                           : absl::StripTrailingAsciiWhitespace(end));
}

absl::Status Installation::CheckBuilt() const {
  std::error_code error;
  for (const fs::path& program : {cell_worker(), python_worker(), worker_library()}) {
    if (!fs::exists(program, error))
      return absl::NotFoundError(
          absl::StrCat(program.string(), " is not built: run tools/bkm setup"));
  }
  return absl::OkStatus();
}

fs::path Installation::kernels() const {
  const fs::path path = bin / "harness/kernels/libvarlen_cpu.so";
  std::error_code error;
  return fs::exists(path, error) ? path : fs::path();
}

absl::StatusOr<std::string> Installation::CellCodeDigest() const {
  std::map<std::string, fs::path> files;  // by a name that is the same wherever bkm lies
  for (const fs::path& program : {cell_worker(), python_worker(), worker_library(), kernels()}) {
    if (!program.empty()) files[program.filename()] = program;
  }
  const fs::path package = python_code() / "bkm_cell";
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(
           package, fs::directory_options::follow_directory_symlink, error)) {
    const std::string name = entry.path().lexically_relative(package.parent_path());
    const bool is_shipped = !absl::EndsWith(name, "_test.py") && !absl::EndsWith(name, ".pyc");
    if (is_shipped && entry.is_regular_file(error)) files[name] = entry.path();
  }
  std::string all;
  for (const auto& [name, file] : files) {
    ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(file));
    absl::StrAppend(&all, name, " ", hash, "\n");
  }
  return Sha256(all);
}

bool RunsAlone(const fs::path& python, const std::string& version) {
  return version != EmbeddedPythonVersion() || FindLibpython(python).empty();
}

fs::path CellPython() {
  const char* python = std::getenv("BKM_PYTHON");
  return python && *python ? python : "/usr/bin/python3";
}

}  // namespace bkm
