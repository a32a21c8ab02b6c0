// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/download.h"

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/source/isolated_python.h"
#include "harness/source/uv.h"

namespace bkm {
namespace {

constexpr char kDownloadProgram[] =
#include "harness/source/package_download_py.inc"
    ;

}  // namespace

absl::Status Download(const std::filesystem::path& python, const std::string& url,
                      const std::filesystem::path& target) {
  Command command = IsolatedPython(python, kDownloadProgram, {url, target.string()});
  command.set_env = PackageSourceEnvironment();
  command.timeout = std::chrono::hours(4);
  ASSIGN_OR_RETURN(const std::string output, RunForOutput(command));
  ASSIGN_OR_RETURN(const Json json, ParseJson(output, "package_download.py"));
  if (!json.contains("error")) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot download ", url, ": ", TextOf(json, "error"),
                   " (check the network and the registry: UV_DEFAULT_INDEX, HTTPS_PROXY)"));
}

}  // namespace bkm
