// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/orphans.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "harness/base/descriptor.h"

namespace bkm {
namespace {

TEST(OrphansTest, ADaemonOfADeadChildIsFoundAndKilled) {
  AdoptOrphans();
  const Pipe pipe = *MakePipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      while (true) ::pause();
    }
    ::_exit(::write(pipe.write.get(), &daemon, sizeof daemon) == sizeof daemon ? 0 : 1);
  }
  ::waitpid(child, nullptr, 0);
  pid_t daemon = -1;
  ASSERT_EQ(::read(pipe.read.get(), &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
  ASSERT_EQ(::kill(daemon, 0), 0);

  KillOrphans();

  EXPECT_NE(::kill(daemon, 0), 0);
}

}  // namespace
}  // namespace bkm
