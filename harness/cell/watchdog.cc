// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/descriptor.h"
#include "harness/cell/control_groups.h"

namespace bkm {
namespace {

// The folders are walked on every tenth check, up to this many files.
constexpr int kLooksPerWalk = 10;
// Reading what is mapped takes about a millisecond for a process with torch.
constexpr int kLooksPerMaps = 5;
// The kernel keeps up to 208 KiB for each, which no limit on memory sees.
constexpr int64_t kMostBuffers = 1024;
constexpr int kMostFiles = 20000;  // inodes are as finite as bytes
constexpr int kDeepestFolder = 100;

Descriptor OpenFolder(int at, const char* name) {
  return Descriptor(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// What a file, folder or link takes, as its file system counts it: names, attributes and blocks
// beyond a file's end, too. Never less than the size: some file systems count what is written late.
int64_t BytesOf(const struct stat& info) {
  constexpr int64_t kBlock = 512;  // stat(2)
  const int64_t taken = info.st_blocks * kBlock;
  return S_ISREG(info.st_mode) ? std::max<int64_t>(info.st_size, taken) : taken;
}

int64_t SizeOf(const Descriptor& file) {
  struct stat info = {};
  return ::fstat(file.get(), &info) == 0 ? BytesOf(info) : 0;
}

struct Total {
  int64_t bytes = 0;
  int64_t files = 0;
  bool too_deep = false;
};

// As large as the kernel lets a single file become.
int64_t EvidenceMib(int64_t output_mib) { return 4 * output_mib + 256; }

// Adds up the files below `folder`, which it closes, without following links.
void AddTree(Descriptor folder, int depth, Total& total) {
  DIR* listing = ::fdopendir(folder.get());
  if (!listing) return;
  folder.Release();  // closedir closes it
  while (const dirent* entry = ::readdir(listing)) {
    if (total.files > kMostFiles || total.too_deep) break;
    const absl::string_view name = entry->d_name;
    struct stat info = {};
    if (name == "." || name == ".." ||
        ::fstatat(::dirfd(listing), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    ++total.files;
    total.bytes += BytesOf(info);
    if (!S_ISDIR(info.st_mode)) continue;
    // Nobody but a subject with a purpose nests that deep: the rest is beyond counting.
    if (depth == kDeepestFolder) total.too_deep = true;
    if (depth < kDeepestFolder)
      AddTree(OpenFolder(::dirfd(listing), entry->d_name), depth + 1, total);
  }
  ::closedir(listing);
}

}  // namespace

int64_t OwnResidentKib() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

Watchdog::Watchdog(const CellOrder& order, ProcessTree tree, int64_t shared_kib)
    : order_(order),
      limits_(order.limits),
      tree_(std::move(tree)),
      shared_kib_(shared_kib),
      cpu_before_s_(AccountSeconds(order.cpu_account)),
      start_(Clock::now()),
      next_(start_) {
  AddOwnLibraries(own_libraries_);
}

std::vector<std::string> Watchdog::Libraries() const {
  std::vector<std::string> names;
  std::set_difference(libraries_.begin(), libraries_.end(), own_libraries_.begin(),
                      own_libraries_.end(), std::back_inserter(names));
  return names;
}

Overrun Watchdog::Check(Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (limits_.timeout_s > 0 && elapsed > limits_.timeout_s)
    return {StopCause::kTimedOut, absl::StrCat("still running after ", limits_.timeout_s, " s")};
  if (now < next_) return {};
  next_ = now + kInterval;
  if (Overrun overrun = CheckProcesses(); overrun.stop != StopCause::kNone) return overrun;
  return CheckFiles(/*with_folders=*/looks_++ % kLooksPerWalk == 0);
}

Overrun Watchdog::CheckProcesses() {
  const std::vector<ProcessUse> processes = tree_.List();
  if (looks_ % kLooksPerMaps == 0) tree_.AddLibraries(processes, libraries_);
  if (limits_.processes > 0 && static_cast<int64_t>(processes.size()) > limits_.processes) {
    return {StopCause::kProcesses,
            absl::StrCat(processes.size(), " processes of ", limits_.processes)};
  }
  if (Overrun overrun = CheckCpu(); overrun.stop != StopCause::kNone) return overrun;
  // Each forked process also holds the preloaded pages.
  int64_t grown_kib = 0;
  for (const ProcessUse& process : processes)
    grown_kib += std::max<int64_t>(0, process.resident_kib - shared_kib_);
  const int64_t limit_kib = limits_.memory_mib * 1024;
  const int64_t files_kib = tree_.FilesInMemoryKib();
  if (limit_kib == 0 || grown_kib + files_kib <= limit_kib) return {};
  // Pages that the cell's processes share were counted more than once, and mapped files twice.
  int64_t exact_kib = grown_kib;
  if (processes.size() > 1 || files_kib > 0) {
    const ProportionalUse use = tree_.Proportional(processes);
    exact_kib = use.kib + std::max<int64_t>(0, files_kib - use.shared_memory_kib);
  }
  if (exact_kib <= limit_kib) return {};
  return {StopCause::kMemory,
          absl::StrCat("used ", exact_kib / 1024, " MiB of ", limits_.memory_mib)};
}

// The control group also counts processes that lived too shortly to be listed.
Overrun Watchdog::CheckCpu() const {
  const double used =
      std::max(tree_.CpuSeconds(), AccountSeconds(order_.cpu_account) - cpu_before_s_);
  if (limits_.cpu_s == 0 || used <= limits_.cpu_s) return {};
  return {StopCause::kCpu,
          absl::StrFormat("computed for %.1f s of %g in all threads", used, limits_.cpu_s)};
}

Overrun Watchdog::CheckFiles(bool with_folders) const {
  if (limits_.output_mib == 0) return {};
  Total output{.bytes = SizeOf(order_.out) + SizeOf(order_.err)};
  Total evidence;
  int64_t buffers = 0;
  if (with_folders) {
    AddTree(OpenFolder(order_.work.get(), "."), 0, output);
    AddTree(OpenFolder(order_.tensors.get(), "."), 0, evidence);
    struct stat work = {};
    // A file that has no name any more occupies the disk as long as a process has it open.
    if (::fstat(order_.work.get(), &work) == 0) {
      const OpenFiles open = tree_.Open(work.st_dev);
      output.bytes += open.unlinked_bytes;
      output.files += open.unlinked;
      buffers = open.buffers;
    }
  }
  if (output.bytes > limits_.output_mib << 20)
    return {StopCause::kOutput,
            absl::StrCat("wrote ", output.bytes >> 20, " MiB of ", limits_.output_mib)};
  const int64_t most_evidence = EvidenceMib(limits_.output_mib);
  if (evidence.bytes > most_evidence << 20)
    return {StopCause::kOutput,
            absl::StrCat("wrote ", evidence.bytes >> 20, " MiB of evidence, of ", most_evidence)};
  if (output.too_deep || evidence.too_deep)
    return {StopCause::kFiles, absl::StrCat("nested more than ", kDeepestFolder, " folders")};
  if (buffers > kMostBuffers) {
    return {StopCause::kFiles,
            absl::StrCat("had more than ", kMostBuffers, " sockets and pipes open")};
  }
  if (output.files + evidence.files > kMostFiles)
    return {StopCause::kFiles, absl::StrCat("made more than ", kMostFiles, " files")};
  return {};
}

}  // namespace bkm
