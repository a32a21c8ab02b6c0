// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/control_groups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kControllers[] = {"memory", "pids", "cpu", "cpuacct", "blkio"};
constexpr char kUnified[] = "unified";
// The watchdog's limit comes first. It does not count file caches, nor the preloaded pages that a
// cell copies by touching them.
constexpr int64_t kMemoryBesideMib = 1024;
// The watchdog counts processes, the kernel threads.
constexpr int64_t kThreadsPerProcess = 32;

bool Write(const fs::path& file, const std::string& text) {
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return opened.valid() && WriteAll(opened.get(), text);
}

// The number behind `key` in a file of "key number" lines.
int64_t Count(const fs::path& file, absl::string_view key) {
  std::ifstream lines(file);
  std::string name;
  int64_t value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

// Whether a group used all the memory that it may use. The kernel also ends its processes if a
// group around it or the whole machine has no memory left.
bool ReachedItsMemory(const fs::path& folder, bool unified) {
  if (unified) return Count(folder / "memory.events", "oom") > 0;
  // With a limit on swap, memory.failcnt stays 0. The kernel counts pages in batches.
  constexpr int64_t kBatch = 1 << 20;
  int64_t most = 0, limit = 0;
  std::ifstream(folder / "memory.max_usage_in_bytes") >> most;
  std::ifstream(folder / "memory.limit_in_bytes") >> limit;
  return most + kBatch >= limit;
}

// Where a group of the machine lies in a mount: `root` is the group that is mounted.
std::optional<fs::path> Locate(const std::string& root, const std::string& mount_point,
                               const std::string& group) {
  if (root == "/") return fs::path(mount_point) / fs::path(group).relative_path();
  if (group == root) return fs::path(mount_point);
  if (absl::StartsWith(group, root + "/"))
    return fs::path(mount_point) / group.substr(root.size() + 1);
  return std::nullopt;
}

void Limit(const fs::path& folder, const std::string& controller, const RequestedLimits& limits) {
  const bool unified = controller == kUnified;
  if (limits.memory_mib > 0 && (unified || controller == "memory")) {
    const std::string bytes =
        absl::StrCat((limits.memory_mib + limits.memory_mib / 4 + kMemoryBesideMib) << 20);
    Write(folder / (unified ? "memory.max" : "memory.limit_in_bytes"), bytes);
    if (unified) {
      Write(folder / "memory.swap.max", "0");
      Write(folder / "memory.oom.group", "1");
    } else {
      Write(folder / "memory.memsw.limit_in_bytes", bytes);
    }
  }
  if (limits.processes > 0 && (unified || controller == "pids"))
    Write(folder / "pids.max", absl::StrCat(limits.processes * kThreadsPerProcess));
}

}  // namespace

std::vector<GroupParent> FindGroupParents(absl::string_view mountinfo, absl::string_view cgroup) {
  std::map<std::string, std::string> own;  // controller -> group; "": version 2
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const absl::string_view name : absl::StrSplit(parts[1], ','))
      own[std::string(name)] = parts[2];
  }
  std::vector<GroupParent> first;
  std::vector<GroupParent> second;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    // "31 23 0:28 ROOT MOUNT_POINT options - TYPE SOURCE SUPER_OPTIONS"
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 10 || words.end() - dash < 4) continue;
    const std::string& type = *(dash + 1);
    if (type == "cgroup2") {
      if (own.contains("")) {
        if (const auto folder = Locate(words[3], words[4], own[""]))
          second.push_back({*folder, kUnified});
      }
      continue;
    }
    if (type != "cgroup") continue;
    for (const absl::string_view option : absl::StrSplit(*(dash + 3), ',')) {
      const std::string name(option);
      const bool wanted = std::find(std::begin(kControllers), std::end(kControllers), option) !=
                          std::end(kControllers);
      if (!wanted || !own.contains(name)) continue;
      if (const auto folder = Locate(words[3], words[4], own[name]))
        first.push_back({*folder, name});
    }
  }
  return first.empty() ? second : first;
}

CellGroups::CellGroups(const std::vector<GroupParent>& parents, const std::string& name,
                       const RequestedLimits& limits)
    : limits_(limits) {
  for (const GroupParent& parent : parents) {
    const fs::path folder = parent.folder / absl::StrCat(kPrefix, name);
    // Controllers reach a group of version 2 only if its parent hands them on. A parent that has
    // processes of its own cannot.
    if (parent.controller == kUnified)
      Write(parent.folder / "cgroup.subtree_control", "+memory +pids +cpu +io");
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) continue;
    groups_.push_back({folder, parent.controller});
    Limit(folder, parent.controller, limits);
  }
}

CellGroups::~CellGroups() {
  for (const Group& group : groups_) ::rmdir(group.folder.c_str());
}

std::vector<Descriptor> CellGroups::Doors() const {
  std::vector<Descriptor> doors;
  for (const Group& group : groups_) {
    Descriptor door(::open((group.folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (door.valid()) doors.push_back(std::move(door));
  }
  return doors;
}

Descriptor CellGroups::CpuAccount() const {
  for (const Group& group : groups_) {
    const char* file = group.controller == kUnified    ? "cpu.stat"
                       : group.controller == "cpuacct" ? "cpuacct.usage"
                                                       : nullptr;
    if (file) return Descriptor(::open((group.folder / file).c_str(), O_RDONLY | O_CLOEXEC));
  }
  return Descriptor();
}

std::optional<GroupOverrun> CellGroups::Overrun() const {
  for (const Group& group : groups_) {
    const bool unified = group.controller == kUnified;
    const fs::path events = group.folder / (unified ? "memory.events" : "memory.oom_control");
    if ((unified || group.controller == "memory") && Count(events, "oom_kill") > 0 &&
        ReachedItsMemory(group.folder, unified))
      return GroupOverrun{"memory", absl::StrCat("used more than ", limits_.memory_mib,
                                                 " MiB, and the kernel ended a process of it")};
    if ((unified || group.controller == "pids") && Count(group.folder / "pids.events", "max") > 0)
      return GroupOverrun{"processes", absl::StrCat("started more threads than the kernel allows ",
                                                    limits_.processes, " processes")};
  }
  return std::nullopt;
}

void CellGroups::RemoveStale(const std::vector<GroupParent>& parents) {
  for (const GroupParent& parent : parents) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent.folder, error)) {
      const std::string name = entry.path().filename();
      absl::string_view rest = name;
      int pid = 0;
      if (!absl::ConsumePrefix(&rest, kPrefix) ||
          !absl::SimpleAtoi(rest.substr(0, rest.find('-')), &pid))
        continue;
      if (::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
    }
  }
}

double AccountSeconds(const Descriptor& account) {
  // cpuacct.usage is a number of nanoseconds; cpu.stat begins with "usage_usec N".
  char text[256] = {};
  if (!account.valid() || ::pread(account.get(), text, sizeof text - 1, 0) <= 0) return 0;
  absl::string_view number = text;
  const double unit = absl::ConsumePrefix(&number, "usage_usec ") ? 1e6 : 1e9;
  int64_t used = 0;
  return absl::SimpleAtoi(number.substr(0, number.find('\n')), &used)
             ? static_cast<double>(used) / unit
             : 0;
}

int64_t MachineOutOfMemoryKills() { return Count("/proc/vmstat", "oom_kill"); }

}  // namespace bkm
