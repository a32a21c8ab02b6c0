// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/libtorch.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/source/uv.h"
#include "harness/store/file_lock.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// uv installs packages right into this folder. tools/bkm keeps environments beside it.
fs::path FolderOf(const fs::path& cache, const std::string& version) {
  return cache / "libtorch" / absl::StrCat(version, ".packages");
}

}  // namespace

std::string LibTorchToFetch(const Installation& installation) {
  return std::string(
      absl::StripAsciiWhitespace(ReadFile(installation.root / "libtorch").value_or("")));
}

fs::path FindLibTorch(const fs::path& cache, const std::string& version) {
  const fs::path folder = FolderOf(cache, version) / "torch/lib";
  std::error_code error;
  return fs::exists(folder / "libtorch_cpu.so", error) ? folder : fs::path();
}

absl::StatusOr<fs::path> FetchLibTorch(const fs::path& cache, const std::string& version,
                                       const fs::path& python,
                                       const std::function<void(const std::string&)>& note) {
  const fs::path folder = FolderOf(cache, version), part = folder.string() + ".part";
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(folder.string() + ".lock"));
  if (const fs::path found = FindLibTorch(cache, version); !found.empty()) return found;
  note(absl::StrCat("installing torch ", version, " for LibTorch, once: about 200 MB"));
  RETURN_IF_ERROR(RemoveTree(part));
  ASSIGN_OR_RETURN(const Uv uv, Uv::Find());
  std::vector<std::string> arguments = {"pip",           "install",          "--no-deps",
                                        "--target",      part.string(),      "--python",
                                        python.string(), "torch==" + version};
  for (const std::string& argument : TorchBackendArguments("cpu")) arguments.push_back(argument);
  ASSIGN_OR_RETURN(const ProcessResult result,
                   InstallAnew(part, [&] { return uv.Run(arguments); }));
  RETURN_IF_ERROR(ErrorOf(result, absl::StrCat("installing torch ", version, " for LibTorch")));
  std::error_code error;
  fs::rename(part, folder, error);
  const fs::path found = FindLibTorch(cache, version);
  if (found.empty()) {
    return absl::InternalError(
        absl::StrCat("torch ", version, " has no LibTorch in ", (error ? part : folder).string()));
  }
  return found;
}

}  // namespace bkm
