// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/user_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/cell/sandbox.h"

namespace bkm {
namespace {

using testing::ElementsAre;

constexpr uid_t kNobody = 65534;
constexpr int kRefused = 42;

// The exit status of `body` in a forked child that is not root.
template <typename F>
int StatusAsNobody(F body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0) {
      if (::setresgid(kNobody, kNobody, kNobody) != 0) ::_exit(kRefused);
      if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(kRefused);
      ::prctl(PR_SET_DUMPABLE, 1);  // else /proc/self stays root's
    }
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(UserNamespaceTest, SomeoneWhoIsNotRootGetsTheWholeSandbox) {
  const int status = StatusAsNobody([] {
    const uid_t before = ::geteuid();
    const pid_t pid = ::getpid();
    ContinueInUserNamespace();
    if (::getpid() == pid) return kRefused;
    const Sandbox sandbox = ProbeSandbox();
    return sandbox.mount && sandbox.network && sandbox.pid && ::geteuid() == before ? 0 : 1;
  });
  if (status == kRefused) GTEST_SKIP() << "this system lets nobody make a user namespace";

  EXPECT_EQ(status, 0);
}

TEST(UserNamespaceTest, TheCallerEndsAsTheChildDoes) {
  const int status = StatusAsNobody([] {
    const pid_t pid = ::getpid();
    ContinueInUserNamespace();
    return ::getpid() == pid ? kRefused : 7;
  });
  if (status == kRefused) GTEST_SKIP() << "this system lets nobody make a user namespace";

  EXPECT_EQ(status, 7);
}

}  // namespace
}  // namespace bkm
