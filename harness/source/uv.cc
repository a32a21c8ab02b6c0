// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/uv.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// uv's hint when it was told to work offline.
constexpr absl::string_view kOffline = "unavailable because the network was disabled";

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// uv's chain of causes, outermost first, each in one line.
std::vector<std::string> Causes(absl::string_view text) {
  std::vector<std::string> causes;
  bool said = false;  // uv prints its progress before the first cause
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    bool begins = false;
    for (absl::string_view mark :
         {"error: ", "cause: ", "Caused by: ", "hint: ", "× ", "╰─▶ ", "├─▶ "}) {
      begins |= absl::ConsumePrefix(&line, mark);
    }
    absl::ConsumePrefix(&line, "│ ");
    line = absl::StripAsciiWhitespace(line);
    said |= begins;
    if (line.empty() || !said || absl::StartsWith(line, "No solution found when resolving"))
      continue;
    if (begins || causes.empty()) {
      causes.emplace_back(line);
    } else {
      absl::StrAppend(&causes.back(), " ", line);
    }
  }
  return causes;
}

// Whether `cause` is one of uv's own sentences about a failed transfer. The text of a package, a
// build or an option that merely contains such words is not.
bool IsFailedTransfer(absl::string_view cause) {
  return absl::StartsWith(cause, "Failed to fetch") ||
         absl::StartsWith(cause, "Failed to download") ||
         absl::StartsWith(cause, "Request failed") ||
         absl::StartsWith(cause, "error sending request") || absl::StrContains(cause, kOffline);
}

}  // namespace

absl::StatusOr<Uv> Uv::Find() {
  if (IsSet("BKM_UV")) return Uv(std::getenv("BKM_UV"));
  std::error_code error;
  for (absl::string_view folder :
       absl::StrSplit(IsSet("PATH") ? std::getenv("PATH") : "", ':', absl::SkipEmpty())) {
    const fs::path program = fs::path(std::string(folder)) / "uv";
    if (fs::is_regular_file(program, error)) return Uv(program);
  }
  const fs::path own = CacheDirectory() / "uv-env" / "bin" / "uv";
  if (fs::is_regular_file(own, error)) return Uv(own);
  return absl::FailedPreconditionError(
      "uv is not installed: run tools/bkm, which installs it, or pip install uv, or set BKM_UV");
}

absl::StatusOr<ProcessResult> Uv::Run(const std::vector<std::string>& arguments, std::string input,
                                      std::vector<std::string> unset_env) const {
  Command command;
  command.argv = {program_.string()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.input = std::move(input);
  command.directory = "/";  // hides a pyproject.toml or uv.toml of the current folder
  // uv leaves a lock file for each source tree that it builds.
  const fs::path temporaries = CacheDirectory() / "tmp" / "uv";
  RETURN_IF_ERROR(CreateDirectories(temporaries));
  command.set_env = {{"NO_COLOR", "1"},
                     {"TMPDIR", temporaries},
                     {"UV_NO_PROGRESS", "1"},
                     {"UV_PYTHON_DOWNLOADS", "never"}};
  command.unset_env = {
      "CONDA_PREFIX",        "PYTHONDONTWRITEBYTECODE", "PYTHONHOME",       "PYTHONPATH",
      "UV_COMPILE_BYTECODE", "UV_CONSTRAINT",           "UV_EXCLUDE",       "UV_EXCLUDE_NEWER",
      "UV_OVERRIDE",         "UV_PRERELEASE",           "UV_PROJECT",       "UV_PYTHON",
      "UV_REQUIRE_HASHES",   "UV_RESOLUTION",           "UV_SYSTEM_PYTHON", "VIRTUAL_ENV"};
  command.unset_env.insert(command.unset_env.end(), unset_env.begin(), unset_env.end());
  absl::StatusOr<ProcessResult> result = RunCommand(command);
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no uv at ", program_.string(), ": run tools/bkm, which installs it, or set BKM_UV"));
  }
  return result;
}

bool IsNoSolution(const ProcessResult& result) {
  // Offline, uv also prints "No solution found" for a package that is merely not in its cache.
  return result.exit_code == 1 && absl::StrContains(result.err, "No solution found") &&
         !absl::StrContains(result.err, kOffline);
}

std::string UvComplaint(const ProcessResult& result) {
  std::vector<std::string> causes = Causes(result.err);
  if (causes.empty()) return absl::StrCat("uv ended with ", result.exit_code);
  // For a failed transfer, keep the URL and the last cause; the layers between add nothing.
  const auto fetch = std::find_if(causes.begin(), causes.end(), [](const std::string& cause) {
    return absl::StartsWith(cause, "Failed to fetch") ||
           absl::StartsWith(cause, "Failed to download");
  });
  if (fetch != causes.end() && causes.end() - fetch > 2) causes.erase(fetch + 1, causes.end() - 1);
  return absl::StrJoin(causes, ": ");
}

absl::Status ErrorOf(const ProcessResult& result, absl::string_view doing) {
  const std::string what = absl::StrCat(doing, ": ", UvComplaint(result));
  if (absl::StrContains(result.err, "No space left on device") ||
      absl::StrContains(result.err, "(os error 28)")) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " (free some space, or set BKM_CACHE and UV_CACHE_DIR)"));
  }
  const std::vector<std::string> causes = Causes(result.err);
  if (std::any_of(causes.begin(), causes.end(), IsFailedTransfer)) {
    return absl::UnavailableError(
        absl::StrCat(what, " (check the network and the registry: UV_DEFAULT_INDEX, HTTPS_PROXY)"));
  }
  if (IsNoSolution(result)) return absl::NotFoundError(what);
  return absl::InternalError(what);
}

std::vector<std::string> TorchBackendArguments(absl::string_view backend) {
  if (backend.empty()) return {};
  for (const char* variable : {"UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
                               "UV_DEFAULT_INDEX", "UV_TORCH_BACKEND"}) {
    if (IsSet(variable)) return {};
  }
  return {"--torch-backend", std::string(backend)};
}

std::vector<std::string> CutoffArguments(const std::string& cutoff,
                                         const std::vector<std::string>& exempt) {
  if (cutoff.empty()) return {};
  std::vector<std::string> arguments = {"--exclude-newer", cutoff};
  for (const std::string& name : exempt)
    arguments.insert(arguments.end(), {"--exclude-newer-package", absl::StrCat(name, "=false")});
  return arguments;
}

}  // namespace bkm
