// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/bytecode.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// The end of a compiled file's name: ".cpython-311.pyc".
std::string Suffix(const std::string& python) {
  return absl::StrCat(".cpython-", absl::StrReplaceAll(python, {{".", ""}}), ".pyc");
}

}  // namespace

int64_t LinkBytecode(const fs::path& sibling, const fs::path& site, const std::string& python) {
  const std::string suffix = Suffix(python);
  int64_t linked = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(site, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().extension() != ".py") continue;
    const fs::path source = it->path().lexically_relative(site);
    std::error_code absent;
    // The same file under two names has the same content and time, which the compiled file records.
    if (!fs::equivalent(it->path(), sibling / source, absent) || absent) continue;
    const fs::path compiled =
        source.parent_path() / "__pycache__" / (source.stem().string() + suffix);
    fs::create_directory((site / compiled).parent_path(), absent);
    fs::create_hard_link(sibling / compiled, site / compiled, absent);
    linked += !absent;
  }
  return linked;
}

absl::Status CompileBytecode(const fs::path& python, const fs::path& site) {
  return RunCommand({.argv = {python.string(), "-I", "-S", "-m", "compileall", "-q", "-j", "0",
                              site.string()},
                     .set_env = {{"LC_ALL", "C.UTF-8"}},
                     .exact_env = true,
                     .directory = "/",
                     .timeout = std::chrono::hours(1),
                     .in_own_group = false,
                     .may_run_again = true})
      .status();
}

bool HasBytecode(const fs::path& package, const std::string& python) {
  std::error_code error;
  return fs::exists(package / "__pycache__" / ("__init__" + Suffix(python)), error);
}

absl::Status CompileBytecodeElsewhere(const fs::path& python, const fs::path& folder,
                                      const fs::path& elsewhere) {
  return RunCommand({.argv = {python.string(), "-I", "-S", "-X",
                              absl::StrCat("pycache_prefix=", elsewhere.string()), "-m",
                              "compileall", "-q", "-j", "0", folder.string()},
                     .unset_env = {"SOURCE_DATE_EPOCH"},
                     .directory = "/"})
      .status();
}

}  // namespace bkm
