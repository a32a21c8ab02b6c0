// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CONTROL_GROUPS_H_
#define HARNESS_CELL_CONTROL_GROUPS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_request.h"

namespace bkm {

// A folder of control groups in which this process may create others.
struct GroupParent {
  std::filesystem::path folder;
  // "memory", "pids", "cpu", "cpuacct", "blkio"; "unified" for version 2
  std::string controller;
};

// The parents by the contents of /proc/self/mountinfo and /proc/self/cgroup: version 1 if it has
// controllers, else version 2. Whether they may be used shows when they are used.
std::vector<GroupParent> FindGroupParents(absl::string_view mountinfo, absl::string_view cgroup);

// The limit by which the kernel stopped a cell.
struct GroupOverrun {
  std::string limit;  // "memory" or "processes"
  std::string message;
};

// The control groups of one cell, as far as the machine offers them: memory and processes are
// limited, and the processor and the disks are shared fairly with other cells. The kernel enforces
// these limits also on what no watchdog sees: files in memory, sockets, threads.
class CellGroups {
 public:
  // `name`: unique on the machine.
  CellGroups(const std::vector<GroupParent>& parents, const std::string& name,
             const RequestedLimits& limits);
  CellGroups(CellGroups&&) = default;
  CellGroups& operator=(CellGroups&&) = default;
  // Removes the groups. All processes in them must have ended.
  ~CellGroups();

  // A process that writes "0" to each joins the groups.
  std::vector<Descriptor> Doors() const;
  // The file that counts the processor time of all processes that were ever in the groups; invalid
  // if no group counts it.
  Descriptor CpuAccount() const;
  // The limit that the groups' processes exceeded. nullopt if the kernel ended one because others
  // used up the machine's memory.
  std::optional<GroupOverrun> Overrun() const;

  // Removes groups that a killed supervisor left in `parents`.
  static void RemoveStale(const std::vector<GroupParent>& parents);

  static constexpr char kPrefix[] = "bkm-cell-";

 private:
  struct Group {
    std::filesystem::path folder;
    std::string controller;
  };
  std::vector<Group> groups_;
  RequestedLimits limits_;
};

// The processor time in an account that CellGroups::CpuAccount opened. Zero without one.
double AccountSeconds(const Descriptor& account);

// How often this machine ran out of memory and killed a process.
int64_t MachineOutOfMemoryKills();

}  // namespace bkm

#endif  // HARNESS_CELL_CONTROL_GROUPS_H_
