// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/cell/private_descriptor.h"

namespace bkm {
namespace {

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// A process may map what it likes: bounds the time and memory to read of it.
constexpr size_t kMostMaps = 4 << 20;
constexpr size_t kMostLibraries = 2000;

// A small file of /proc; empty if the process has ended.
std::string ReadProc(int proc, const std::string& path) {
  const Descriptor file(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(8192, '\0');
  const ssize_t n = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::vector<pid_t> AllPids(int proc) {
  std::vector<pid_t> pids;
  Descriptor opened(::openat(proc, ".", kOpenFolder));
  DIR* folder = ::fdopendir(opened.get());
  if (!folder) return pids;
  opened.Release();  // closedir closes it
  while (const dirent* entry = ::readdir(folder)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid)) pids.push_back(pid);
  }
  ::closedir(folder);
  return pids;
}

// The parent of `pid` in the machine's /proc; 0 if the process has ended.
pid_t ParentOf(int proc, pid_t pid) {
  const std::string stat = ReadProc(proc, absl::StrCat(pid, "/stat"));
  const size_t name_end = stat.rfind(')');  // the name may contain any character
  int parent = 0;
  if (name_end != std::string::npos) std::sscanf(stat.c_str() + name_end + 1, " %*c %d", &parent);
  return parent;
}

// Clock ticks of a process: its own, and those of the children that it waited for.
struct CpuTicks {
  int64_t own = 0;
  int64_t children = 0;
  int64_t started = 0;
};
CpuTicks TicksOf(int proc, pid_t pid) {
  const std::string stat = ReadProc(proc, absl::StrCat(pid, "/stat"));
  const size_t name_end = stat.rfind(')');
  // From the third field on: state, ..., utime, stime, cutime, cstime, ..., starttime.
  const std::vector<absl::string_view> fields =
      name_end == std::string::npos
          ? std::vector<absl::string_view>()
          : absl::StrSplit(absl::string_view(stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  const auto number = [&](size_t field) {
    int64_t value = 0;
    return fields.size() > field - 3 && absl::SimpleAtoi(fields[field - 3], &value) ? value : 0;
  };
  return {number(14) + number(15), number(16) + number(17), number(22)};
}

int64_t ResidentKib(int proc, pid_t pid) {
  const std::string statm = ReadProc(proc, absl::StrCat(pid, "/statm"));
  long size = 0;
  long resident = 0;
  std::sscanf(statm.c_str(), "%ld %ld", &size, &resident);
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

// The last part of a line of "maps" is the file that is mapped.
void AddLibrary(absl::string_view line, std::set<std::string>& names) {
  const size_t slash = line.rfind('/');
  if (slash == line.npos || names.size() >= kMostLibraries) return;
  const absl::string_view name = line.substr(slash + 1);
  if (absl::EndsWith(name, ".so") || absl::StrContains(name, ".so.")) names.emplace(name);
}

void AddLibrariesOf(int proc, const std::string& path, std::set<std::string>& names) {
  const Descriptor file(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return;
  std::string rest;
  char buffer[65536];
  for (size_t total = 0; total < kMostMaps;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    total += static_cast<size_t>(n);
    rest.append(buffer, static_cast<size_t>(n));
    size_t start = 0;
    for (size_t end; (end = rest.find('\n', start)) != rest.npos; start = end + 1)
      AddLibrary(absl::string_view(rest).substr(start, end - start), names);
    rest.erase(0, start);
  }
}

}  // namespace

void AddOwnLibraries(std::set<std::string>& names) {
  AddLibrariesOf(AT_FDCWD, "/proc/self/maps", names);
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  const Descriptor proc(::open("/proc", kOpenFolder));
  if (!proc.valid()) return children;
  for (const pid_t pid : AllPids(proc.get())) {
    if (ParentOf(proc.get(), pid) == parent) children.push_back(pid);
  }
  return children;
}

bool ProcessTree::OpenProc() {
  if (proc_.valid()) return true;
  if (!own_proc_) {
    proc_ = ToPrivate(Descriptor(::open("/proc", kOpenFolder)));
    return proc_.valid();
  }
  Descriptor found =
      Descriptor(::open(absl::StrCat("/proc/", cell_, "/root/proc").c_str(), kOpenFolder));
  struct stat machine = {};
  struct stat cell = {};
  // Until the cell mounts its own /proc, this is the machine's, with the processes of everyone.
  if (!found.valid() || ::stat("/proc", &machine) != 0 || ::fstat(found.get(), &cell) != 0 ||
      machine.st_dev == cell.st_dev) {
    return false;
  }
  proc_ = ToPrivate(std::move(found));
  return proc_.valid();
}

std::vector<pid_t> ProcessTree::ListOwnProc() const {
  std::vector<pid_t> pids = AllPids(proc_.get());
  pids.erase(std::remove(pids.begin(), pids.end(), 1), pids.end());  // the namespace's init
  return pids;
}

std::vector<pid_t> ProcessTree::ListDescendants() {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : AllPids(proc_.get())) children.emplace(ParentOf(proc_.get(), pid), pid);
  std::set<pid_t> found = {cell_};
  std::vector<pid_t> queue = {cell_};
  if (init_ > 0) queue.push_back(init_);
  // Also processes seen before whose parent has ended since.
  for (const pid_t pid : seen_) {
    if (found.insert(pid).second) queue.push_back(pid);
  }
  for (size_t at = 0; at < queue.size(); ++at) {
    const auto [begin, end] = children.equal_range(queue[at]);
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second).second) queue.push_back(child->second);
    }
  }
  std::set<pid_t> alive;
  for (const auto& [parent, pid] : children) alive.insert(pid);
  std::vector<pid_t> result;
  std::set_intersection(found.begin(), found.end(), alive.begin(), alive.end(),
                        std::back_inserter(result));
  seen_ = result;
  seen_.erase(std::remove(seen_.begin(), seen_.end(), cell_), seen_.end());
  return result;
}

std::vector<ProcessUse> ProcessTree::List() {
  std::vector<ProcessUse> result;
  if (!OpenProc()) return result;
  listed_ = own_proc_ ? ListOwnProc() : ListDescendants();
  for (const pid_t pid : listed_) result.push_back({pid, ResidentKib(proc_.get(), pid)});
  CountCpu();
  return result;
}

// Two counts, each of which misses something: the processes that were listed, and those that are
// alive with the children that they waited for. Added, they would count children twice.
void ProcessTree::CountCpu() {
  std::map<pid_t, OwnCpu> now;
  int64_t with_children = 0;
  for (const pid_t pid : listed_) {
    const CpuTicks ticks = TicksOf(proc_.get(), pid);
    now[pid] = {ticks.started, ticks.own};
    with_children += ticks.own + ticks.children;
  }
  for (const auto& [pid, before] : cpu_) {
    const auto found = now.find(pid);
    if (found == now.end() || found->second.started != before.started) ended_ticks_ += before.ticks;
  }
  cpu_ = std::move(now);
  most_with_children_ = std::max(most_with_children_, with_children);
}

double ProcessTree::CpuSeconds() const {
  int64_t ticks = ended_ticks_;
  for (const auto& [pid, cpu] : cpu_) ticks += cpu.ticks;
  return static_cast<double>(std::max(ticks, most_with_children_)) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void ProcessTree::AddLibraries(const std::vector<ProcessUse>& processes,
                               std::set<std::string>& names) const {
  for (const ProcessUse& process : processes)
    AddLibrariesOf(proc_.get(), absl::StrCat(process.pid, "/maps"), names);
}

ProportionalUse ProcessTree::Proportional(const std::vector<ProcessUse>& processes) const {
  ProportionalUse use;
  for (const ProcessUse& process : processes) {
    const std::string rollup = ReadProc(proc_.get(), absl::StrCat(process.pid, "/smaps_rollup"));
    const auto field = [&](const std::string& name) {
      const size_t at = rollup.find(absl::StrCat("\n", name, ":"));
      return at == std::string::npos ? 0 : std::atoll(rollup.c_str() + at + name.size() + 2);
    };
    use.kib += field("Pss");
    use.shared_memory_kib += field("Pss_Shmem");
  }
  return use;
}

int64_t ProcessTree::FilesInMemoryKib() {
  if (!own_proc_ || !OpenProc()) return 0;
  if (in_memory_.empty()) {
    for (const char* path : {"/tmp", "/dev/shm"}) {
      in_memory_.push_back(ToPrivate(Descriptor(
          ::open(absl::StrCat("/proc/", cell_, "/root", path).c_str(), kOpenFolder | O_PATH))));
    }
  }
  int64_t bytes = 0;
  for (const Descriptor& root : in_memory_) {
    struct statfs info = {};
    if (root.valid() && ::fstatfs(root.get(), &info) == 0 && info.f_type == TMPFS_MAGIC)
      bytes += static_cast<int64_t>(info.f_blocks - info.f_bfree) * info.f_bsize;
  }
  return bytes / 1024;
}

OpenFiles ProcessTree::Open(dev_t device) const {
  std::set<std::pair<dev_t, ino_t>> counted;
  OpenFiles total;
  for (const pid_t pid : listed_) {
    Descriptor opened(::openat(proc_.get(), absl::StrCat(pid, "/fd").c_str(), kOpenFolder));
    DIR* folder = ::fdopendir(opened.get());
    if (!folder) continue;
    opened.Release();  // closedir closes it
    while (const dirent* entry = ::readdir(folder)) {
      struct stat info = {};
      if (::fstatat(::dirfd(folder), entry->d_name, &info, 0) != 0) continue;
      const bool buffers = S_ISSOCK(info.st_mode) || S_ISFIFO(info.st_mode);
      const bool unlinked = S_ISREG(info.st_mode) && info.st_nlink == 0 && info.st_dev == device;
      if ((!buffers && !unlinked) || !counted.emplace(info.st_dev, info.st_ino).second) continue;
      total.buffers += buffers;
      total.unlinked += unlinked;
      if (unlinked) total.unlinked_bytes += info.st_blocks * 512;
    }
    ::closedir(folder);
  }
  return total;
}

}  // namespace bkm
