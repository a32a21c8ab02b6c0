// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The user's view: help, the status line of a terminal, and subjects that print rubbish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/version.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// The output of `command` on a terminal of 80 columns.
std::string OnTerminal(const Command& command) {
  winsize size = {.ws_row = 24, .ws_col = 80};
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    for (const auto& [name, value] : command.set_env) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<std::string> argv = command.argv;
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = ::read(terminal, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  ::close(terminal);
  ::waitpid(pid, nullptr, 0);
  return text;
}

// Every state of the status line.
std::vector<std::string> StatusLines(const std::string& text) {
  std::vector<std::string> lines;
  for (absl::string_view part : absl::StrSplit(text, "\r\033[K")) {
    const absl::string_view line = part.substr(0, part.find_first_of("\r\n"));
    if (!line.empty() && line.front() == '[' && part.find('\n') == part.npos)
      lines.emplace_back(line);
  }
  return lines;
}

TEST(TerminalTest, StatusStaysOnOneLineAndOnlyRedCellsStayAbove) {
  const BkmUnderTest bkm;

  const std::string text =
      OnTerminal(bkm.MakeCommand({"run", bkm.WriteMatrix({"passes", "refuses", "exits"})}));

  const std::vector<std::string> status = StatusLines(text);
  EXPECT_THAT(status, ::testing::Contains("[0/3] 0 running, 0 red, very roughly 18 s left"));
  EXPECT_THAT(status, Each(SizeIs(::testing::Le(79u))));
  EXPECT_THAT(text,
              HasSubstr("refused  fixture refuses/engine x fake_library refuses/library, flex, "
                        "bf16: construct: NotImplementedError"));
  EXPECT_THAT(text, Not(HasSubstr("ok       fixture passes/engine")));
}

TEST(TerminalTest, HelpShowsGroupsAndExamples) {
  const BkmUnderTest bkm;
  const ProcessResult all = bkm.Run({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, AllOf(HasSubstr("run "), HasSubstr("replay "), HasSubstr("Exit codes: ")));
  const ProcessResult run = bkm.Run({"plan", "--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("Instead of a matrix file: every combination of these:"),
                             HasSubstr("Examples:\n  bkm plan matrices/bkm.json")));
}

TEST(TerminalTest, VersionIsOneLine) {
  const BkmUnderTest bkm;
  const ProcessResult result = bkm.Run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, absl::StrCat("bkm ", kVersion, "\n"));
  EXPECT_EQ(result.err, "");
}

TEST(TerminalTest, NoArgumentsShowTheHelpAsAnError) {
  const BkmUnderTest bkm;
  const ProcessResult result = bkm.Run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, bkm.Run({"--help"}).out);
}

TEST(TerminalTest, RubbishFromASubjectStaysOnItsLine) {
  const BkmUnderTest bkm;
  // Invalid UTF-8 on both streams, and a multi-line message with terminal control codes.
  bkm.WritePair("rubbish", R"(
import sys
sys.stdout.buffer.write(b"\xff\xfe\x00 \x1b[2J\n" * 10)
sys.stderr.buffer.write(b"\xc3\x28\n")
raise ValueError("\x1b[2J first | \udcff\r\nsecond\n" + "x" * 100000)
)");

  const ProcessResult result = bkm.Run({"run", bkm.WriteMatrix({"rubbish", "passes"})});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("broken"), Not(HasSubstr("\033")), Not(HasSubstr("\r"))));
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\r"))));
  for (const std::string& text : {result.err, result.out, *ReadFile(bkm.out() / "table.md")}) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 500u) << line;
  }
  const Json cell = bkm.CellOf(bkm.ReadRun(), "rubbish");
  EXPECT_EQ(cell["verdict"], "broken");
  EXPECT_EQ(cell["reason"], "value-error");
  const ProcessResult story = bkm.Run({"explain", bkm.out(), "engine=*rubbish*"});
  EXPECT_EQ(story.exit_code, 0) << story.err;
  EXPECT_THAT(story.out, AllOf(HasSubstr("second"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace bkm
