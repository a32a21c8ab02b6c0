// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

Mutant Ended(MutantOutcome outcome) {
  return {.mutation = {.party = Party::kEngine,
                       .file = "verl/m.py",
                       .line = 7,
                       .function = "step",
                       .operation = "wrong-axis"},
          .cell = "cells/x",
          .diff = "-old\n+new\n",
          .outcome = outcome,
          .verdict = "ok",
          .message = "all numbers are right"};
}

MutatedPair APair() {
  return {.cell = "engine=verl",
          .seed = 3,
          .possible = 40,
          .unreached = 9,
          .mutants = {Ended(MutantOutcome::kKilled), Ended(MutantOutcome::kKilled),
                      Ended(MutantOutcome::kKilled), Ended(MutantOutcome::kSurvived),
                      Ended(MutantOutcome::kCrashed), Ended(MutantOutcome::kIdentical),
                      Ended(MutantOutcome::kUnmeasured)}};
}

TEST(MutationReportTest, OnlyKilledAndSurvivedMutantsCount) {
  const MutationCounts counts = CountsOf(APair().mutants);
  EXPECT_EQ(counts.total(), 7);
  EXPECT_EQ(counts.counted(), 4);
  EXPECT_EQ(counts.rate(), 0.75);
}

TEST(MutationReportTest, WithoutACountedMutantThereIsNoRate) {
  EXPECT_EQ(CountsOf(std::vector{Ended(MutantOutcome::kCrashed)}).rate(), std::nullopt);
  EXPECT_THAT(MutationText({{.cell = "a"}}, 0.98), HasSubstr("no mutant ran to its end"));
}

TEST(MutationReportTest, TheTextShowsEachSurvivorWithItsChange) {
  const std::string text = MutationText({APair()}, 0.98);
  EXPECT_THAT(text, HasSubstr("3 of 4 mutants that changed a number are red (75.0 %)"));
  EXPECT_THAT(text, HasSubstr("at least 98.0 % are required"));
  EXPECT_THAT(text, HasSubstr("SURVIVED: engine verl/m.py:7 in step, wrong-axis\n-old\n+new\nok: "
                              "all numbers are right\ncells/x\n"));
  EXPECT_THAT(text, HasSubstr("9 of lines that never ran were left out"));
}

TEST(MutationReportTest, NoOtherMutantIsShownAsASurvivor) {
  MutatedPair pair = APair();
  std::erase_if(pair.mutants,
                [](const Mutant& m) { return m.outcome == MutantOutcome::kSurvived; });
  EXPECT_THAT(MutationText({pair}, 0.98), Not(HasSubstr("SURVIVED:")));
}

TEST(MutationReportTest, JsonHasTheCountsAndEveryMutant) {
  const OrderedJson json = MutationJson({APair(), APair()}, 0.98);
  EXPECT_EQ(json["counts"], OrderedJson::parse(
                                R"({"mutants": 14, "killed": 6, "survived": 2, "crashed": 2,
                                    "bit_identical": 2, "not_measured": 2, "rate": 0.75})"));
  EXPECT_EQ(json["pairs"].size(), 2u);
  EXPECT_EQ(json["pairs"][0]["mutants"].size(), 7u);
  EXPECT_EQ(json["pairs"][0]["mutants"][3]["outcome"], "survived");
}

TEST(MutationReportTest, WhatIsWrittenIsRead) {
  const fs::path file = fs::path(::testing::TempDir()) / "mutation.json";
  const OrderedJson written = MutationJson({APair(), APair()}, 0.98);
  ASSERT_TRUE(WriteFile(file, written.dump()).ok());
  const absl::StatusOr<std::vector<MutatedPair>> read = ReadMutationReport(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(MutationJson(*read, 0.98), written);
}

TEST(MutationReportTest, AnotherDocumentIsRefusedWithItsPath) {
  const fs::path file = fs::path(::testing::TempDir()) / "other.json";
  ASSERT_TRUE(WriteFile(file, R"({"schema": 1, "detections": []})").ok());
  EXPECT_THAT(std::string(ReadMutationReport(file).status().message()),
              HasSubstr("other.json: is not a report"));
}

}  // namespace
}  // namespace bkm
