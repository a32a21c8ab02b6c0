// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/isolated_python.h"

namespace bkm {

Command IsolatedPython(const std::filesystem::path& python, const std::string& program,
                       const std::vector<std::string>& arguments) {
  Command command;
  command.argv = {python.string(), "-I", "-S", "-B", "-c", program};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.exact_env = true;
  command.set_env = {{"LC_ALL", "C.UTF-8"}};
  command.directory = "/";
  command.in_own_group = false;
  command.may_run_again = true;
  return command;
}

}  // namespace bkm
