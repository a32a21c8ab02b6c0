// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/embedded_python.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace bkm {

namespace fs = std::filesystem;

std::string EmbeddedPythonVersion() { return BKM_PYTHON_VERSION; }

fs::path BaseOfEnvironment(const fs::path& prefix) {
  std::ifstream file(prefix / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {  // "home = /usr/bin"
    const size_t at = line.find('=');
    if (at == std::string::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, at)) == "home")
      return fs::path(std::string(absl::StripAsciiWhitespace(line.substr(at + 1)))).parent_path();
  }
  return {};
}

fs::path FindLibpython(const fs::path& python) {
  const std::string name = absl::StrCat("libpython", EmbeddedPythonVersion(), ".so.1.0");
  const fs::path prefix = python.parent_path().parent_path();
  std::error_code error;
  const fs::path real = fs::canonical(python, error);
  for (const fs::path& base : {BaseOfEnvironment(prefix), real.parent_path().parent_path()}) {
    for (const char* folder : {"lib", "lib64", "lib/x86_64-linux-gnu"}) {
      const fs::path file = base / folder / name;
      // The dynamic linker would take a path with one of these for two paths.
      if (base.is_absolute() && file.string().find_first_of(" :") == std::string::npos &&
          fs::is_regular_file(file, error))
        return file;
    }
  }
  return {};
}

}  // namespace bkm
