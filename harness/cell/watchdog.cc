// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// The work folder is walked on every tenth check, up to this many files.
constexpr int kLooksPerWalk = 10;
constexpr int kMostFiles = 20000;

int64_t SizeOf(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

int64_t SizeOfTree(const fs::path& folder) {
  int64_t total = 0;
  int files = 0;
  std::error_code error;
  auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied,
                                             error);
  for (; !error && it != fs::recursive_directory_iterator() && files < kMostFiles;
       it.increment(error), ++files) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && !it->is_symlink(ignored)) total += SizeOf(it->path());
  }
  return total;
}

}  // namespace

int64_t OwnResidentKib() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

Watchdog::Watchdog(const CellRequest& request, ProcessTree tree, int64_t shared_kib)
    : limits_(request.limits),
      dir_(request.dir),
      tree_(std::move(tree)),
      shared_kib_(shared_kib),
      start_(Clock::now()),
      next_(start_) {}

Overrun Watchdog::Check(Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (limits_.timeout_s > 0 && elapsed > limits_.timeout_s)
    return {StopCause::kTimedOut, absl::StrCat("still running after ", limits_.timeout_s, " s")};
  if (now < next_) return {};
  next_ = now + kInterval;
  if (Overrun overrun = CheckProcesses(); overrun.stop != StopCause::kNone) return overrun;
  const int64_t bytes = OutputBytes(/*with_work=*/looks_++ % kLooksPerWalk == 0);
  if (limits_.output_mib > 0 && bytes > limits_.output_mib << 20)
    return {StopCause::kOutput,
            absl::StrCat("wrote ", bytes >> 20, " MiB of ", limits_.output_mib)};
  return {};
}

Overrun Watchdog::CheckProcesses() {
  const std::vector<ProcessUse> processes = tree_.List();
  if (limits_.processes > 0 && static_cast<int64_t>(processes.size()) > limits_.processes) {
    return {StopCause::kProcesses,
            absl::StrCat(processes.size(), " processes of ", limits_.processes)};
  }
  // Each forked process also holds the preloaded pages.
  int64_t grown_kib = 0;
  for (const ProcessUse& process : processes)
    grown_kib += std::max<int64_t>(0, process.resident_kib - shared_kib_);
  const int64_t limit_kib = limits_.memory_mib * 1024;
  if (limit_kib == 0 || grown_kib <= limit_kib) return {};
  // Pages that the cell's processes share were counted more than once.
  const int64_t exact_kib = processes.size() > 1 ? tree_.ProportionalKib(processes) : grown_kib;
  if (exact_kib <= limit_kib) return {};
  return {StopCause::kMemory,
          absl::StrCat("used ", exact_kib / 1024, " MiB of ", limits_.memory_mib)};
}

int64_t Watchdog::OutputBytes(bool with_work) const {
  return SizeOf(dir_ / "stdout") + SizeOf(dir_ / "stderr") +
         (with_work ? SizeOfTree(dir_ / "work") : 0);
}

Overrun Watchdog::CheckOutput() const {
  const int64_t bytes = OutputBytes(/*with_work=*/true);
  if (limits_.output_mib == 0 || bytes <= limits_.output_mib << 20) return {};
  return {StopCause::kOutput, absl::StrCat("wrote ", bytes >> 20, " MiB of ", limits_.output_mib)};
}

}  // namespace bkm
