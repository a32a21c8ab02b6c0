// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/sandbox_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNothingMissing[] = R"({"available":true,"missing":[]})";
constexpr char kNoNamespaces[] =
    R"({"available":false,"missing":["no user namespace: EPERM","no mount: EPERM"]})";

std::string Answer(const std::string& full, const std::string& weak) {
  return R"({"full":)" + full + R"(,"weak":)" + weak + R"(,"off":)" + kNothingMissing + "}\n";
}

TEST(SandboxLevelsTest, StrongestLevelIsTheFirstThatIsAvailable) {
  EXPECT_EQ(SandboxLevels::Parse(Answer(kNothingMissing, kNothingMissing))->Strongest(),
            SandboxLevel::kFull);
  EXPECT_EQ(SandboxLevels::Parse(Answer(kNoNamespaces, kNothingMissing))->Strongest(),
            SandboxLevel::kWeak);
  EXPECT_EQ(SandboxLevels::Parse(Answer(kNoNamespaces, kNoNamespaces))->Strongest(),
            SandboxLevel::kOff);
}

TEST(SandboxLevelsTest, MissingLevelIsAnErrorThatNamesEachProtectionAndTheWeakerLevel) {
  const SandboxLevels levels = *SandboxLevels::Parse(Answer(kNoNamespaces, kNothingMissing));
  EXPECT_TRUE(levels.Check(SandboxLevel::kWeak).ok());
  const absl::Status full = levels.Check(SandboxLevel::kFull);
  EXPECT_EQ(full.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(full.message()),
      AllOf(HasSubstr("no user namespace: EPERM; no mount: EPERM"), HasSubstr("--sandbox=weak")));
}

TEST(SandboxLevelsTest, WhereNothingIsOfferedOnlyOffIsLeft) {
  const SandboxLevels levels = *SandboxLevels::Parse(Answer(kNoNamespaces, kNoNamespaces));
  for (const SandboxLevel level : {SandboxLevel::kFull, SandboxLevel::kWeak})
    EXPECT_THAT(std::string(levels.Check(level).message()), HasSubstr("--sandbox=off"));
  EXPECT_TRUE(levels.Check(SandboxLevel::kOff).ok());
}

TEST(SandboxLevelsTest, AnswerThatIsNotUnderstoodOffersNothing) {
  for (const char* answer : {"", "full", "{}", "[]", R"({"full":true})"})
    EXPECT_FALSE(SandboxLevels::Parse(answer).ok()) << answer;
}

class FakeWorkerTest : public ::testing::Test {
 protected:
  // A worker that is this shell script.
  absl::Status Check(const std::string& script, SandboxLevel level) {
    const Installation installation{.bin = *CreateTempDirectory(::testing::TempDir(), "levels-")};
    EXPECT_TRUE(WriteFile(installation.cell_worker(), "#!/bin/sh\n" + script).ok());
    fs::permissions(installation.cell_worker(), fs::perms(0755));
    return CheckSandbox(installation, level);
  }
};

TEST_F(FakeWorkerTest, WorkerThatCannotAnswerOffersNothing) {
  EXPECT_FALSE(Check("exit 2", SandboxLevel::kFull).ok());
  EXPECT_FALSE(Check("echo nonsense", SandboxLevel::kFull).ok());
  EXPECT_TRUE(Check("exit 2", SandboxLevel::kOff).ok());
}

TEST_F(FakeWorkerTest, WorkerIsAskedForItsLevels) {
  EXPECT_TRUE(Check("[ \"$1\" = sandbox-levels ] && echo '" +
                        Answer(kNothingMissing, kNothingMissing) + "'",
                    SandboxLevel::kFull)
                  .ok());
}

}  // namespace
}  // namespace bkm
