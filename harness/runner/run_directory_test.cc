// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() : directory_(*CreateTempDirectory(::testing::TempDir(), "run-")) {
    record_.id = "cell";
    record_.dir = "cells/cell";
    EXPECT_TRUE(directory_.PrepareCell(record_, {{"key", "k"}}, "bkm").ok());
    EXPECT_TRUE(WriteFile(folder() / "tensors/step0", "numbers").ok());
    EXPECT_TRUE(WriteFile(folder() / "stdout", "it ran").ok());
    EXPECT_TRUE(directory_
                    .WriteObservation(
                        record_, CellFacts::OfReport({{"schema", 1},
                                                      {"ending", {{"kind", "completed"}}},
                                                      {"steps", {{{"tensors", "tensors/step0"}}}}}))
                    .ok());
  }
  fs::path folder() const { return directory_.cell(record_); }

  const RunDirectory directory_;
  CellRecord record_;
};

TEST_F(RunDirectoryTest, AnyDamagedPartOfTheEvidenceIsFound) {
  ASSERT_EQ(directory_.VerifyCell(record_), absl::OkStatus());
  for (const char* name : {"observation.json", "request.json", "stdout", "tensors/step0"}) {
    const std::string good = *ReadFile(folder() / name);
    std::string bad = good;
    bad[bad.size() / 2] ^= 1;
    ASSERT_TRUE(WriteFile(folder() / name, bad).ok());
    EXPECT_TRUE(absl::IsDataLoss(directory_.VerifyCell(record_))) << name;
    fs::remove(folder() / name);
    EXPECT_TRUE(absl::IsDataLoss(directory_.VerifyCell(record_))) << name;
    ASSERT_TRUE(WriteFile(folder() / name, good).ok());
  }
  EXPECT_EQ(directory_.VerifyCell(record_), absl::OkStatus());
}

TEST_F(RunDirectoryTest, ARecordNamesFoldersOfItsRunOnly) {
  const fs::path outside = *CreateTempDirectory(::testing::TempDir(), "outside-");
  const auto read = [&](const std::string& dir) {
    record_.cell.engine = "transformers";
    record_.dir = dir;
    EXPECT_TRUE(directory_.WriteRun({.matrix = "m", .cells = {record_}}).ok());
    return directory_.ReadRun().status();
  };
  EXPECT_EQ(read("cells/cell"), absl::OkStatus());
  EXPECT_EQ(read("cells/not-measured-yet"), absl::OkStatus());
  for (const std::string& dir :
       {outside.string(), std::string("../outside"), std::string("cells/../.."),
        std::string("cells/.."), std::string("cells/"), std::string("cells/cell/work"),
        std::string("."), std::string(""), std::string("other/cell")})
    EXPECT_THAT(read(dir).message(), HasSubstr("is not below cells")) << dir;
  fs::create_directory_symlink(outside, directory_.root() / "cells/elsewhere");
  EXPECT_THAT(read("cells/elsewhere").message(), HasSubstr("is a link"));
  fs::rename(directory_.root() / "cells", directory_.root() / "others");
  fs::create_directory_symlink(directory_.root() / "others", directory_.root() / "cells");
  EXPECT_THAT(read("cells/cell").message(), HasSubstr("is a link"));
}

TEST_F(RunDirectoryTest, NoPartOfARunIsALinkThatLeadsOutOfIt) {
  const fs::path outside = *CreateTempDirectory(::testing::TempDir(), "outside-");
  ASSERT_TRUE(WriteFile(outside / "file", "theirs").ok());
  record_.cell.engine = "transformers";
  ASSERT_TRUE(directory_.WriteRun({.matrix = "m", .cells = {record_}}).ok());
  const fs::path root = directory_.root();
  for (const char* name : {"locks", "references", "probes", "workers", "table.md", "locks/a.json",
                           "probes/key/config.json", "cells/cell/stdout", "cells/cell/work",
                           "cells/cell/replay", "cells/left.damaged-1"}) {
    fs::create_directories((root / name).parent_path());
    const fs::path kept = root / "kept";
    std::error_code none;
    fs::rename(root / name, kept, none);
    for (const fs::path& target : {outside, outside / "file", outside / "none"}) {
      fs::create_symlink(target, root / name);
      EXPECT_THAT(directory_.ReadRun().status().message(), HasSubstr("leads out of the run"))
          << name << " " << target;
      fs::remove(root / name);
    }
    fs::rename(kept, root / name, none);
  }
  for (const fs::path& cell : {folder(), root / "unmutated/cells/cell"}) {
    for (const char* name : {"work", "tensors", "replay/work"}) {
      fs::create_directories(cell / name);
      fs::create_symlink(outside, cell / name / "of-the-cell");
    }
  }
  fs::create_symlink("cells", root / "of-this-run");
  EXPECT_EQ(directory_.ReadRun().status(), absl::OkStatus());
}

TEST_F(RunDirectoryTest, VerdictsAndWorkAreNoEvidence) {
  ASSERT_TRUE(WriteFile(folder() / "verdict.json", "{}").ok());
  ASSERT_TRUE(WriteFile(folder() / "work/left", "").ok());
  EXPECT_EQ(directory_.VerifyCell(record_), absl::OkStatus());
}

TEST_F(RunDirectoryTest, AnEqualVerdictIsNotWrittenAgain) {
  const fs::path verdict = folder() / "verdict.json", first = folder() / "first";
  record_.verdict = Verdict{.kind = VerdictKind::kOk, .stage = Stage::kGolden};
  ASSERT_TRUE(directory_.WriteVerdict(record_).ok());
  fs::create_hard_link(verdict, first);
  ASSERT_TRUE(directory_.WriteVerdict(record_).ok());
  EXPECT_TRUE(fs::equivalent(verdict, first));
  record_.verdict->message = "another";
  ASSERT_TRUE(directory_.WriteVerdict(record_).ok());
  EXPECT_FALSE(fs::equivalent(verdict, first));
  EXPECT_EQ(**directory_.ReadVerdict(record_), *record_.verdict);
}

TEST_F(RunDirectoryTest, ACellOfAnOlderVersionHasNoChecksumsButNeedsItsTensors) {
  ASSERT_TRUE(RemoveManifest(folder()).ok());
  EXPECT_EQ(directory_.VerifyCell(record_), absl::OkStatus());
  fs::remove(folder() / "tensors/step0");
  const absl::Status status = directory_.VerifyCell(record_);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensors/step0 is missing"));
}

// A kept cell whose files cannot all be brought, as when the disk is full, is not taken for one of
// an older version.
TEST_F(RunDirectoryTest, AnAdoptedCellIsWholeOrHasNoObservation) {
  const RunDirectory other(*CreateTempDirectory(::testing::TempDir(), "run-"));
  const fs::path adopted = other.cell(record_);
  ASSERT_TRUE(other.PrepareCell(record_, {{"key", "k"}}, "bkm").ok());
  ASSERT_EQ(other.AdoptCell(record_, folder()), absl::OkStatus());
  EXPECT_EQ(other.VerifyCell(record_), absl::OkStatus());
  EXPECT_EQ(other.ReadObservation(record_).value(), directory_.ReadObservation(record_).value());
  fs::remove(adopted / "stdout");
  EXPECT_TRUE(absl::IsDataLoss(other.VerifyCell(record_))) << "it has checksums";

  for (const char* blocked : {"tensors/step0", "stdout", "request.json", "manifest.sha256"}) {
    ASSERT_TRUE(other.PrepareCell(record_, {{"key", "k"}}, "bkm").ok());
    fs::remove(adopted / blocked);
    ASSERT_TRUE(CreateDirectories(adopted / blocked / "in the way").ok());
    EXPECT_FALSE(other.AdoptCell(record_, folder()).ok()) << blocked;
    EXPECT_EQ(other.ReadObservation(record_).value(), std::nullopt) << blocked;
  }
}

TEST_F(RunDirectoryTest, ACellThatWasNotMeasuredIsNotDamaged) {
  CellRecord other = record_;
  other.dir = "cells/other";
  ASSERT_TRUE(directory_.PrepareCell(other, Json::object(), "bkm").ok());
  EXPECT_EQ(directory_.VerifyCell(other), absl::OkStatus());
}

TEST_F(RunDirectoryTest, ASecondRunnerIsRefused) {
  const absl::StatusOr<FileLock> lock = directory_.Lock();
  ASSERT_TRUE(lock.ok());
  EXPECT_THAT(std::string(directory_.Lock().status().message()),
              HasSubstr("the run in " + directory_.root().string() + " is in use by process "));
}

TEST_F(RunDirectoryTest, ADamagedRuntimeLockIsNotReadAndIsWrittenAgain) {
  RuntimeLock lock;
  lock.python = "3.11";
  lock.packages.push_back({.name = "a", .version = "1"});
  ASSERT_TRUE(directory_.WriteLock(lock).ok());
  const fs::path file = directory_.lock(lock.Key());
  std::string text = *ReadFile(file);
  text.replace(text.find("\"1\""), 3, "\"2\"");
  ASSERT_TRUE(WriteFile(file, text).ok());
  EXPECT_TRUE(absl::IsDataLoss(directory_.ReadLock(lock.Key()).status()));
  ASSERT_TRUE(directory_.WriteLock(lock).ok());
  EXPECT_EQ(directory_.ReadLock(lock.Key())->packages[0].version, "1");
}

}  // namespace
}  // namespace bkm
