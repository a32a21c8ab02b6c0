// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/references.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "harness/base/files.h"
#include "harness/numerics/probe_folder.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReferencesTest : public ::testing::Test {
 protected:
  ReferencesTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "references-")),
        installation_{.root = root_ / "root", .bin = root_ / "bin"},
        run_(root_ / "run") {
    probe_.model = "llama3";
    probe_folder_ = *WriteProbeFolder(probe_, root_ / "probes");
  }
  // A worker that writes its output, after `does`.
  void WriteWorker(const std::string& does) {
    const fs::path worker = installation_.reference_worker();
    ASSERT_TRUE(WriteFile(worker, absl::StrCat("#!/bin/sh\n"
                                               "[ $1 != --torch-version ] || exec echo 2.13.0\n"
                                               "echo $1 >> ",
                                               (root_ / "runs").string(), "\n", does,
                                               "\nwhile [ $1 != --out ]; do shift; done\n"
                                               "echo made > $2\n"))
                    .ok());
    fs::permissions(worker, fs::perms(0755));
  }
  void MakeAll(References& references) {
    ASSERT_TRUE(references.Want(probe_, probe_folder_, "bf16").ok());
    for (int i = 0; i < 1000 && (references.Advance(2) > 0 || references.busy()); ++i)
      absl::SleepFor(absl::Milliseconds(10));
    EXPECT_FALSE(references.busy());
  }
  std::string Runs() const { return ReadFile(root_ / "runs").value_or(""); }

  const fs::path root_;
  const Installation installation_;
  const RunDirectory run_;
  Probe probe_;
  fs::path probe_folder_;
  References references_{installation_, root_ / "cache", run_, [](const std::string&) {}};
};

TEST_F(ReferencesTest, WhatIsMadeIsInTheRunAndNotMadeAgain) {
  WriteWorker("");
  MakeAll(references_);
  EXPECT_EQ(references_.failure(), "");
  EXPECT_EQ(*ReadFile(run_.reference(GoldenFile(probe_))), "made\n");
  EXPECT_EQ(*ReadFile(run_.reference(FloorFile(probe_, "bf16"))), "made\n");
  const RunDirectory other(root_ / "other");
  References again(installation_, root_ / "cache", other, [](const std::string&) {});
  MakeAll(again);
  EXPECT_EQ(*ReadFile(other.reference(GoldenFile(probe_))), "made\n");
  EXPECT_EQ(Runs(), "golden\nfloor\n");
}

// Ranks that share a batch round their parts of its sums, so they have a floor of their own.
TEST_F(ReferencesTest, LayoutsThatDivideOtherSumsHaveOtherFloors) {
  WriteWorker("");
  MakeAll(references_);
  const fs::path of_one_rank = run_.reference(FloorFile(probe_, "bf16"));
  for (const char* layout : {"dp_shard=2", "dp_replicate=2", "pp=2"}) {
    probe_.layout = *ParseLayout(layout);
    MakeAll(references_);
    EXPECT_TRUE(fs::exists(run_.reference(FloorFile(probe_, "bf16")))) << layout;
    EXPECT_EQ(run_.reference(FloorFile(probe_, "bf16")) == of_one_rank,
              layout == std::string("pp=2"))
        << layout;
  }
  EXPECT_EQ(Runs(), "golden\nfloor\nfloor\n");
}

TEST_F(ReferencesTest, FloorsAreMadeSideBySideOnceTheirGoldenIsThere) {
  WriteWorker("sleep 0.3");
  ASSERT_TRUE(references_.Want(probe_, probe_folder_, "bf16").ok());
  Probe sharded = probe_;
  sharded.layout = *ParseLayout("dp_shard=2");
  ASSERT_TRUE(references_.Want(sharded, probe_folder_, "bf16").ok());
  EXPECT_EQ(references_.Advance(2), 1);  // the golden
  size_t most = 0;
  while (references_.busy()) {
    most = std::max<size_t>(most, references_.Advance(2));
    if (!references_.IsMaking(probe_)) {
      EXPECT_TRUE(fs::exists(run_.reference(FloorFile(probe_, "bf16"))));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(most, std::min(2u, std::thread::hardware_concurrency()));
  EXPECT_EQ(references_.failure(), "");
}

// The floor of another layout keeps no cell from its verdict.
TEST_F(ReferencesTest, ACellWaitsForItsOwnFloorOnly) {
  WriteWorker("");
  MakeAll(references_);
  Probe sharded = probe_;
  sharded.layout = *ParseLayout("dp_shard=2");
  ASSERT_TRUE(references_.Want(sharded, probe_folder_, "bf16").ok());
  EXPECT_TRUE(references_.IsMaking(sharded));
  EXPECT_FALSE(references_.IsMaking(probe_));
}

TEST_F(ReferencesTest, AWorkerThatIsKilledRunsAgain) {
  WriteWorker(
      absl::StrCat("[ $(wc -l < ", (root_ / "runs").string(), ") -ge 3 ] || kill -KILL $$"));
  MakeAll(references_);
  EXPECT_EQ(references_.failure(), "");
  EXPECT_EQ(Runs(), "golden\ngolden\ngolden\nfloor\n");
  EXPECT_EQ(*ReadFile(run_.reference(GoldenFile(probe_))), "made\n");
}

// The floor needs the golden, so it is not tried.
TEST_F(ReferencesTest, AWorkerThatIsAlwaysKilledIsAFailureOfTheMachineThatNamesItsLog) {
  WriteWorker("kill -KILL $$");
  MakeAll(references_);
  EXPECT_EQ(Runs(), "golden\ngolden\ngolden\n");
  EXPECT_THAT(references_.failure(), HasSubstr("cannot compute the golden: see "));
  EXPECT_FALSE(fs::exists(run_.reference(GoldenFile(probe_))));
  EXPECT_TRUE(absl::IsUnavailable(LackOf(run_.reference(GoldenFile(probe_)))));
}

TEST_F(ReferencesTest, AFullDiskIsAFailureOfTheMachine) {
  WriteWorker("[ $1 = golden ] || exit 75");
  MakeAll(references_);
  EXPECT_EQ(Runs(), "golden\nfloor\n");
  EXPECT_THAT(references_.failure(), HasSubstr("cannot compute the bf16 floor: see "));
  EXPECT_TRUE(LackOf(run_.reference(GoldenFile(probe_))).ok());
  EXPECT_TRUE(absl::IsUnavailable(LackOf(run_.reference(FloorFile(probe_, "bf16")))));
}

TEST_F(ReferencesTest, AWorkerThatFailsIsNotRunAgainAndItsFailureIsKeptUntilItSucceeds) {
  const fs::path golden = run_.reference(GoldenFile(probe_));
  for (const char* fails : {"echo no >&2; exit 2", "kill -SEGV $$"}) {
    WriteWorker(fails);
    References references(installation_, root_ / "cache", run_, [](const std::string&) {});
    MakeAll(references);
    EXPECT_EQ(Runs(), "golden\n");
    fs::remove(root_ / "runs");
    EXPECT_TRUE(absl::IsFailedPrecondition(LackOf(golden))) << fails;
    EXPECT_THAT(LackOf(golden).message(), HasSubstr("cannot compute the golden: see "));
    EXPECT_EQ(references.failure(), LackOf(golden).message());
  }
  WriteWorker("");
  MakeAll(references_);
  EXPECT_TRUE(LackOf(golden).ok());
  fs::remove(golden);
  EXPECT_TRUE(absl::IsUnavailable(LackOf(golden)));
}

}  // namespace
}  // namespace bkm
