// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/orphans.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace bkm {
namespace {

TEST(OrphansTest, ADaemonOfADeadChildIsFoundAndKilled) {
  AdoptOrphans();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      while (true) ::pause();
    }
    ::_exit(::write(ends[1], &daemon, sizeof daemon) == sizeof daemon ? 0 : 1);
  }
  ::waitpid(child, nullptr, 0);
  pid_t daemon = -1;
  ASSERT_EQ(::read(ends[0], &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
  ASSERT_EQ(::kill(daemon, 0), 0);

  KillOrphans();

  EXPECT_NE(::kill(daemon, 0), 0);
}

}  // namespace
}  // namespace bkm
