// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/control_groups.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Describe(const std::vector<GroupParent>& parents) {
  std::vector<std::string> result;
  for (const GroupParent& parent : parents)
    result.push_back(parent.controller + " " + parent.folder.string());
  return result;
}

TEST(CellGroupsTest, ControllersOfTheFirstVersionComeFirst) {
  EXPECT_THAT(
      Describe(FindGroupParents(
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
          "36 31 0:33 /outer /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
          "37 31 0:34 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
          "40 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
          "8:pids:/outer/inner\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/x\n")),
      testing::ElementsAre("memory /sys/fs/cgroup/memory/a/b", "pids /sys/fs/cgroup/pids/inner",
                           "cpu /sys/fs/cgroup/cpu/", "cpuacct /sys/fs/cgroup/cpu/"));
}

TEST(CellGroupsTest, TheSecondVersionIsOneHierarchy) {
  EXPECT_THAT(
      Describe(FindGroupParents(
          "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
          "0::/user.slice/user-1000.slice\n")),
      testing::ElementsAre("unified /sys/fs/cgroup/user.slice/user-1000.slice"));
}

TEST(CellGroupsTest, AMachineWithoutGroupsHasNone) {
  EXPECT_TRUE(FindGroupParents("", "").empty());
  EXPECT_TRUE(FindGroupParents("x y\n1 2 3 / / - cgroup\n", "nonsense\n").empty());
  const CellGroups groups({}, "1-0", {});
  EXPECT_TRUE(groups.Doors().empty());
  EXPECT_FALSE(groups.Overrun());
}

std::vector<GroupParent> MemoryParents() {
  std::vector<GroupParent> parents;
  for (const GroupParent& parent : FindGroupParents(ReadFile("/proc/self/mountinfo").value_or(""),
                                                    ReadFile("/proc/self/cgroup").value_or(""))) {
    if (parent.controller == "memory") parents.push_back(parent);
  }
  return parents;
}

// The status of a process in the groups that takes 1.2 GiB: a limit is the asked one and what the
// watchdog does not count, so less would end nobody.
int Devour(const std::vector<Descriptor>& doors) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const Descriptor& door : doors) WriteAll(door.get(), "0");
    const size_t size = size_t{1200} << 20;
    char* memory = static_cast<char*>(std::malloc(size));
    for (size_t i = 0; memory && i < size; i += 4096) memory[i] = 1;
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(CellGroupsTest, AProcessThatTheKernelEndsForMemoryIsSeen) {
  const CellGroups groups(MemoryParents(), std::to_string(::getpid()) + "-test", {.memory_mib = 1});
  const std::vector<Descriptor> doors = groups.Doors();
  if (doors.empty()) GTEST_SKIP() << "this machine lets us create no control group for memory";

  EXPECT_TRUE(WIFSIGNALED(Devour(doors)));
  ASSERT_TRUE(groups.Overrun());
  EXPECT_EQ(groups.Overrun()->limit, "memory");
}

// A container whose memory is used up, as if by others.
TEST(CellGroupsTest, AProcessThatTheKernelEndsForTheMemoryOfOthersExceedsNoLimit) {
  const std::string name = std::to_string(::getpid()) + "-outer";
  const CellGroups outer(MemoryParents(), name, {.memory_mib = 1});
  if (outer.Doors().empty())
    GTEST_SKIP() << "this machine lets us create no control group for memory";
  std::vector<GroupParent> inside;
  for (const GroupParent& parent : MemoryParents())
    inside.push_back({parent.folder / (CellGroups::kPrefix + name), parent.controller});
  const CellGroups groups(inside, "inner", {.memory_mib = 8192});
  const std::vector<Descriptor> doors = groups.Doors();
  ASSERT_FALSE(doors.empty());

  EXPECT_TRUE(WIFSIGNALED(Devour(doors)));
  EXPECT_FALSE(groups.Overrun());
}

TEST(CellGroupsTest, ProcessorTimeOfEndedProcessesIsCounted) {
  const CellGroups groups(FindGroupParents(ReadFile("/proc/self/mountinfo").value_or(""),
                                           ReadFile("/proc/self/cgroup").value_or("")),
                          std::to_string(::getpid()) + "-test", {});
  const Descriptor account = groups.CpuAccount();
  if (!account.valid())
    GTEST_SKIP() << "this machine lets us create no control group that counts processor time";
  const double before = AccountSeconds(account);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const Descriptor& door : groups.Doors()) WriteAll(door.get(), "0");
    while (std::clock() < CLOCKS_PER_SEC / 4) {
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);

  EXPECT_GT(AccountSeconds(account) - before, 0.2);
}

TEST(CellGroupsTest, BothVersionsCountProcessorTime) {
  const fs::path file = fs::path(std::getenv("TEST_TMPDIR")) / "account";
  const auto seconds = [&](absl::string_view text) {
    EXPECT_TRUE(WriteFile(file, text).ok());
    return AccountSeconds(Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC)));
  };
  EXPECT_EQ(seconds("2500000000\n"), 2.5);
  EXPECT_EQ(seconds("usage_usec 2500000\nuser_usec 2000000\n"), 2.5);
  EXPECT_EQ(seconds("nonsense"), 0);
  EXPECT_EQ(AccountSeconds(Descriptor()), 0);
}

}  // namespace
}  // namespace bkm
