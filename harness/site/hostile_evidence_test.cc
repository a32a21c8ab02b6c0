// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <gtest/gtest.h>

#include <string>

#include "harness/base/files.h"
#include "harness/base/shown_text.h"
#include "harness/judge/testing_observation.h"
#include "harness/site/cell_page.h"
#include "harness/site/testing_site.h"

namespace bkm {
namespace {

class HostileEvidenceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *CreateTempDirectory(testing::TempDir(), "site");
    WriteSiteRun(folder_ / "run");
    ASSERT_TRUE(runs_.Add(folder_ / "run").ok());
  }
  void TearDown() override { RemoveTree(folder_).IgnoreError(); }

  std::string PageWith(const Json& observation, const Json& verdict_evidence) const {
    CellEvidence evidence = ADrawnEvidence();
    AdoptEvidence(verdict_evidence, evidence.verdict);
    evidence.raw = observation;
    const absl::StatusOr<Observation> read = ObservationFromJson(observation, "o");
    evidence.observation = read.ok() ? std::optional<Observation>(*read) : std::nullopt;
    const SiteRun& run = *runs_.all().front();
    return CellPage(runs_, run, run.record().cells.front(), evidence).main.html();
  }

  std::filesystem::path folder_;
  SiteRuns runs_;
};

// Every fifth of the mutations: a page takes milliseconds.
TEST_F(HostileEvidenceTest, APageIsMadeWhateverTheObservationHolds) {
  int number = 0;
  for (const char* root : {"", "/exception"}) {
    const auto check = [&](const Json& mutated, const std::string& what) {
      if (number++ % 5 != 0) return;
      const std::string page = PageWith(mutated, AJudgedEvidence());
      ASSERT_EQ(page.find("<b>"), std::string::npos) << what;
      ASSERT_EQ(ShownText(page), page) << what;
    };
    ForEachMutation(*root ? RaisedObservation() : CompleteObservation(), check, root);
  }
  ForEachMutation(
      ARankedObservation(),
      [&](const Json& mutated, const std::string& what) {
        const std::string page = PageWith(mutated, AJudgedEvidence());
        ASSERT_EQ(page.find("<script"), std::string::npos) << what;
        ASSERT_EQ(ShownText(page), page) << what;
      },
      "/ranks");
}

TEST_F(HostileEvidenceTest, APageIsMadeWhateverTheVerdictsEvidenceHolds) {
  ForEachMutation(AJudgedEvidence(), [&](const Json& mutated, const std::string& what) {
    const std::string page = PageWith(CompleteObservation(), mutated);
    ASSERT_EQ(page.find("<b>"), std::string::npos) << what;
  });
}

}  // namespace
}  // namespace bkm
