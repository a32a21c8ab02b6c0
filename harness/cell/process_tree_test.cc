// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "harness/base/descriptor.h"

namespace bkm {
namespace {

// A sleeping child with its own child in another session; it reports that child's pid.
class FamilyTest : public testing::Test {
 protected:
  void SetUp() override {
    const Pipe pipe = *MakePipe();
    cell_ = ::fork();
    if (cell_ == 0) {
      const pid_t grandchild = ::fork();
      if (grandchild == 0) ::setsid();
      if (grandchild > 0 && ::write(pipe.write.get(), &grandchild, sizeof grandchild) < 0)
        ::_exit(1);
      while (true) ::pause();
    }
    ASSERT_EQ(::read(pipe.read.get(), &grandchild_, sizeof grandchild_),
              static_cast<ssize_t>(sizeof grandchild_));
  }

  void TearDown() override {
    ::kill(grandchild_, SIGKILL);
    ::kill(cell_, SIGKILL);
    ::waitpid(cell_, nullptr, 0);
  }

  std::vector<pid_t> Pids(ProcessTree& tree) {
    std::vector<pid_t> pids;
    for (const ProcessUse& use : tree.List()) pids.push_back(use.pid);
    return pids;
  }

  pid_t cell_ = -1;
  pid_t grandchild_ = -1;
};

TEST_F(FamilyTest, WithoutANamespaceTheDescendantsAreFound) {
  ProcessTree tree(cell_, -1, /*own_proc=*/false);

  EXPECT_THAT(Pids(tree), testing::UnorderedElementsAre(cell_, grandchild_));
  EXPECT_THAT(tree.seen(), testing::ElementsAre(grandchild_));
}

TEST_F(FamilyTest, ADescendantThatLostItsParentIsRemembered) {
  ProcessTree tree(cell_, -1, /*own_proc=*/false);
  tree.List();
  ::kill(cell_, SIGKILL);
  ::waitpid(cell_, nullptr, 0);

  EXPECT_THAT(Pids(tree), testing::ElementsAre(grandchild_));
}

TEST_F(FamilyTest, MemoryIsMeasured) {
  ProcessTree tree(cell_, -1, /*own_proc=*/false);
  const std::vector<ProcessUse> processes = tree.List();
  int64_t resident_kib = 0;
  for (const ProcessUse& process : processes) {
    EXPECT_GT(process.resident_kib, 0);
    resident_kib += process.resident_kib;
  }

  // They share their pages with each other and with this test.
  EXPECT_GT(tree.Proportional(processes).kib, 0);
  EXPECT_LT(tree.Proportional(processes).kib, resident_kib);
}

TEST_F(FamilyTest, ACellThatHasNotMountedItsProcYetHasNoProcesses) {
  ProcessTree tree(cell_, -1, /*own_proc=*/true);

  EXPECT_THAT(Pids(tree), testing::IsEmpty());
}

}  // namespace
}  // namespace bkm
