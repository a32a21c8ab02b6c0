// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TORTURE_BKM_PROCESS_H_
#define HARNESS_TORTURE_BKM_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bkm {

// A bkm without a keeper: nothing but itself ends what it started. Its output goes to a file.
class BkmProcess {
 public:
  BkmProcess(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
             const std::filesystem::path& output);
  // Kills it if it still runs.
  ~BkmProcess();
  BkmProcess(const BkmProcess&) = delete;
  BkmProcess& operator=(const BkmProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Waits so long for its end; false when it still runs.
  bool WaitFor(std::chrono::milliseconds time);
  // The exit code, or minus the signal; valid after WaitFor returned true.
  int exit_code() const { return exit_code_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_TORTURE_BKM_PROCESS_H_
