// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/ending.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace bkm {
namespace {

EventLog LogOf(absl::string_view event) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, event));
  return log;
}

int Exited(int code) { return code << 8; }

TEST(EndingTest, DoneAndStatusZeroIsCompleted) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(0)}, LogOf(R"({"done":true})")),
            Json({{"kind", "completed"}}));
}

TEST(EndingTest, StatusZeroWithoutDoneIsAnExit) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(0)}, EventLog()),
            Json({{"kind", "exited"}, {"code", 0}}));
}

TEST(EndingTest, AnotherStatusIsAnExitEvenAfterDone) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(3)}, LogOf(R"({"done":true})")),
            Json({{"kind", "exited"}, {"code", 3}}));
}

TEST(EndingTest, AnExceptionIsRaisedWhateverTheStatus) {
  const EventLog log = LogOf(R"({"exception":{"type":"ValueError"}})");

  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(0)}, log), Json({{"kind", "raised"}}));
  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(1)}, log), Json({{"kind", "raised"}}));
  EXPECT_EQ(EndingOf({StopCause::kNone, "", SIGSEGV}, log), Json({{"kind", "raised"}}));
}

TEST(EndingTest, ASignalIsNamedByItsNumber) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", SIGSEGV}, EventLog()),
            Json({{"kind", "signalled"}, {"signal", SIGSEGV}}));
}

TEST(EndingTest, AKillThatWeDidNotSendCameFromOutside) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", SIGKILL}, EventLog()),
            Json({{"kind", "signalled"}, {"signal", SIGKILL}, {"from_outside", true}}));
}

TEST(EndingTest, WhatTheWorkerStoppedIsNamedByItsReason) {
  EXPECT_EQ(EndingOf({StopCause::kTimedOut, "long", SIGKILL}, EventLog()),
            Json({{"kind", "timed-out"}, {"message", "long"}}));
  EXPECT_EQ(EndingOf({StopCause::kCancelled, "", SIGKILL}, EventLog()),
            Json({{"kind", "cancelled"}}));
  EXPECT_EQ(EndingOf({StopCause::kMemory, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "memory"}, {"message", "m"}}));
  EXPECT_EQ(EndingOf({StopCause::kOutput, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "output"}, {"message", "m"}}));
  EXPECT_EQ(EndingOf({StopCause::kFiles, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "files"}, {"message", "m"}}));
  EXPECT_EQ(EndingOf({StopCause::kCpu, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "cpu"}, {"message", "m"}}));
  EXPECT_EQ(EndingOf({StopCause::kProcesses, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "processes"}, {"message", "m"}}));
  EXPECT_EQ(EndingOf({StopCause::kEvents, "m", SIGKILL}, EventLog()),
            Json({{"kind", "limit"}, {"limit", "events"}, {"message", "m"}}));
}

TEST(EndingTest, ALimitExplainsTheExceptionThatCameOfIt) {
  EXPECT_EQ(EndingOf({StopCause::kOutput, "m", Exited(1)}, LogOf(R"({"exception":{}})"))["kind"],
            "limit");
}

TEST(EndingTest, ACellThatCouldNotBeSetUpSaysWhy) {
  EXPECT_EQ(EndingOf({StopCause::kNone, "", Exited(1)}, LogOf(R"({"failed_to_start":"no space"})")),
            Json({{"kind", "fork-failed"}, {"message", "no space"}}));
}

}  // namespace
}  // namespace bkm
