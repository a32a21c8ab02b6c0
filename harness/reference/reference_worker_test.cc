// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The command line that the runner uses: exit codes and one-sentence errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sysexits.h>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/numerics/probe_folder.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

fs::path Temp(absl::string_view name) { return fs::path(testing::TempDir()) / std::string(name); }

ProcessResult RunWorker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "harness/reference/reference_worker");
  return *RunCommand({.argv = std::move(arguments)});
}

// One short document, so that a run takes a second.
fs::path SmallProbe() {
  Probe probe;
  probe.steps = 1;
  probe.documents = {{8}};
  return *WriteProbeFolder(probe, Temp("cache"));
}

TEST(ReferenceWorkerTest, MakesAGoldenAndAFloorFromIt) {
  const fs::path probe = SmallProbe(), golden = Temp("golden.safetensors");
  const ProcessResult first = RunWorker({"golden", "--probe", probe, "--out", golden});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(SafetensorsFile::Open(golden)->Doubles("step0/log_probs")->size(), 8);
  const ProcessResult second = RunWorker({"floor", "--probe", probe, "--golden", golden,
                                          "--precision", "fp32", "--out", Temp("floor.json")});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(*ReadFile(Temp("floor.json")), HasSubstr("\"members\""));
}

TEST(ReferenceWorkerTest, AnErrorIsOneSentenceAndExitTwo) {
  const ProcessResult result = RunWorker({"golden", "--probe", "/nowhere", "--out", Temp("x")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "reference_worker: cannot read /nowhere/probe.json: No such file or directory\n");
  EXPECT_EQ(result.out, "");
}

// The runner tries again what a full disk prevented (harness/runner/references.cc).
TEST(ReferenceWorkerTest, AFullDiskIsAnExitCodeOfItsOwn) {
  const fs::path small = Temp("small");
  ASSERT_TRUE(CreateDirectories(small).ok());
  const ProcessResult result = *RunCommand(
      {.argv = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                "mount -t tmpfs -o size=4k none \"$1\" && exec "
                "harness/reference/reference_worker golden --probe \"$2\" --out \"$1/golden\"",
                "sh", small, SmallProbe()}});
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
}

TEST(ReferenceWorkerTest, AGoldenOfAnotherProbeIsRefused) {
  Probe other;
  other.steps = 1;
  other.documents = {{9}};
  const fs::path probe = *WriteProbeFolder(other, Temp("cache"));
  const fs::path golden = Temp("golden.safetensors");
  ASSERT_EQ(RunWorker({"golden", "--probe", SmallProbe(), "--out", golden}).exit_code, 0);
  const ProcessResult result = RunWorker({"floor", "--probe", probe, "--golden", golden,
                                          "--precision", "bf16", "--out", Temp("floor.json")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is the golden of another probe"));
}

TEST(ReferenceWorkerTest, WrongUsageIsExitTwoAndHelpIsZero) {
  EXPECT_EQ(RunWorker({}).exit_code, 2);
  EXPECT_EQ(RunWorker({"golden"}).exit_code, 2);
  EXPECT_EQ(RunWorker({"gold", "--probe", "a", "--out", "b"}).exit_code, 2);
  const ProcessResult help = RunWorker({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("golden"), HasSubstr("floor")));
}

}  // namespace
}  // namespace bkm
