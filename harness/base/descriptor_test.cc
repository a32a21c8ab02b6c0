// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace bkm {
namespace {

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(DescriptorTest, ClosesAtTheEndOfItsScope) {
  int fd = -1;
  {
    const Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    fd = descriptor.get();
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(DescriptorTest, AssignmentClosesTheOldDescriptorAndEmptiesTheSource) {
  Pipe pipe = *MakePipe();
  const int kept = pipe.read.get(), replaced = pipe.write.get();

  pipe.write = std::move(pipe.read);

  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_FALSE(pipe.read.valid());
  EXPECT_EQ(pipe.write.get(), kept);
  EXPECT_TRUE(IsOpen(kept));
}

TEST(DescriptorTest, ReleasedDescriptorStaysOpen) {
  int fd = -1;
  {
    Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    fd = descriptor.Release();
    EXPECT_FALSE(descriptor.valid());
  }
  EXPECT_TRUE(IsOpen(fd));
  EXPECT_EQ(Descriptor(fd).Close(), 0);
}

TEST(DescriptorTest, CloseReportsTheSystemsErrorAndClosesOnlyOnce) {
  Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::close(descriptor.get()), 0);
  EXPECT_EQ(descriptor.Close(), EBADF);
  EXPECT_EQ(descriptor.Close(), 0);
}

TEST(DescriptorTest, PipeIsNotInheritedByPrograms) {
  const Pipe pipe = *MakePipe();
  EXPECT_EQ(::fcntl(pipe.read.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(pipe.write.get(), F_GETFD), FD_CLOEXEC);
}

TEST(DescriptorTest, WriteAllFailsOnceTheReaderIsGone) {
  Pipe pipe = *MakePipe();
  EXPECT_TRUE(WriteAll(pipe.write.get(), "text"));
  char text[8] = {};
  EXPECT_EQ(::read(pipe.read.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  pipe.read.Close();
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_FALSE(WriteAll(pipe.write.get(), "text"));
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace bkm
