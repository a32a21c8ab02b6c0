// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/processes.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &pid)) pids.push_back(pid);
  }
  return pids;
}

fs::path Proc(pid_t pid) { return fs::path("/proc") / std::to_string(pid); }

// Name, state and parent of a process; false when it has ended.
bool ReadStat(pid_t pid, std::string& name, pid_t& parent) {
  const absl::StatusOr<std::string> stat = ReadFile(Proc(pid) / "stat");
  if (!stat.ok()) return false;
  const size_t open = stat->find('('), close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 > stat->size())
    return false;
  name = stat->substr(open + 1, close - open - 1);
  const std::vector<std::string> rest = absl::StrSplit(stat->substr(close + 2), ' ');
  return rest.size() > 1 && rest[0] != "Z" && rest[0] != "X" && absl::SimpleAtoi(rest[1], &parent);
}

std::string RoleOf(const std::string& name, const std::string& parent_role,
                   const std::string& program) {
  if (name == "bkm-keeper") return "keeper";
  if (program == "cell_worker" || program == "python_worker")
    return parent_role == "worker" || parent_role == "cell" ? "cell" : "worker";
  if (program == "reference_worker") return "reference worker";
  if (absl::StartsWith(program, "git")) return "git";
  if (absl::StartsWith(program, "python")) return "python";
  if (absl::StartsWith(program, "uv")) return "uv";
  return "other";
}

}  // namespace

std::vector<RunningProcess> ProcessesBelow(pid_t root) {
  std::multimap<pid_t, std::pair<pid_t, std::string>> children;  // by parent: pid and name
  for (const pid_t pid : AllPids()) {
    std::string name;
    pid_t parent = 0;
    if (ReadStat(pid, name, parent)) children.emplace(parent, std::pair(pid, name));
  }
  std::vector<RunningProcess> found = {{root, 0, "runner"}};
  for (size_t i = 0; i < found.size(); ++i) {
    const RunningProcess parent = found[i];
    const auto [first, last] = children.equal_range(parent.pid);
    for (auto it = first; it != last; ++it) {
      std::error_code error;
      const auto& [pid, name] = it->second;
      const std::string program = fs::read_symlink(Proc(pid) / "exe", error).filename().string();
      found.push_back({pid, parent.pid, RoleOf(name, parent.role, program)});
    }
  }
  return found;
}

std::vector<pid_t> ProcessesWith(absl::string_view text) {
  std::vector<pid_t> found;
  for (const pid_t pid : AllPids()) {
    std::string name;
    pid_t parent = 0;
    if (pid == ::getpid() || !ReadStat(pid, name, parent)) continue;
    const absl::StatusOr<std::string> environment = ReadFile(Proc(pid) / "environ");
    if (environment.ok() && absl::StrContains(*environment, text)) found.push_back(pid);
  }
  return found;
}

}  // namespace bkm
