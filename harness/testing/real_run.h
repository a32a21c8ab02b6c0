// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TESTING_REAL_RUN_H_
#define HARNESS_TESTING_REAL_RUN_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/testing/real_bkm.h"

namespace bkm {

// The cells of a run of the real bkm, by name.
class RealRun {
 public:
  // Some fields of run.json's cells, or of their probes: {{"library_label", "0.2.1"}, {"head",
  // "lm"}}.
  using Fields = std::map<std::string, std::string>;

  // RunRealCells, and what it came to.
  static absl::StatusOr<RealRun> Make(std::vector<std::string> arguments, const std::string& name,
                                      int worst = 1);

  // The one subject cell with these fields; an object that says so when there is none or several.
  Json Cell(const Fields& fields) const;
  // "ok at golden", "broken at forward".
  std::string VerdictOf(const Fields& fields) const;
  // With the reason: "broken at forward, unexpected-keyword".
  std::string ReasonOf(const Fields& fields) const;
  const Json& json() const { return run_; }  // run.json
  // A file of that cell's folder; null when there is none.
  Json FileOf(const Fields& fields, const std::string& file) const;

 private:
  RealRun(std::filesystem::path folder, Json run)
      : folder_(std::move(folder)), run_(std::move(run)) {}

  std::filesystem::path folder_;
  Json run_;
};

// Tests that share one run: `class Suite : public SharedRunTest<Suite>` with a static
// absl::StatusOr<RealRun> MakeRun(). They are skipped without mirrors and without a network.
template <typename Suite>
class SharedRunTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Mirrors().empty()) run_ = new absl::StatusOr<RealRun>(Suite::MakeRun());
  }
  static void TearDownTestSuite() {
    delete run_;
    run_ = nullptr;
  }
  void SetUp() override {
    if (run_ == nullptr)
      GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
    if (IsNoNetwork(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_TRUE(run_->ok()) << run_->status();
  }
  static const RealRun& run() { return **run_; }

 private:
  static inline absl::StatusOr<RealRun>* run_ = nullptr;
};

}  // namespace bkm

#endif  // HARNESS_TESTING_REAL_RUN_H_
