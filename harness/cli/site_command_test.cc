// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm site on a run of the real bkm, and its messages about unusable input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SiteCommandTest : public ::testing::Test {
 protected:
  std::string Complaint(const std::vector<std::string>& arguments) {
    const ProcessResult result = bkm_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "more than a line: " << result.err;
    EXPECT_FALSE(fs::exists(site())) << "something was written";
    return bkm_.WithoutPaths(result.err);
  }
  fs::path site() const { return bkm_.folder() / "site"; }

  const BkmUnderTest bkm_;
};

TEST_F(SiteCommandTest, APageForEveryCellOfARun) {
  ASSERT_EQ(bkm_.Run({"run", bkm_.WriteMatrix({"passes", "import_raises"}), "--quiet"}).exit_code,
            0);

  const ProcessResult result = bkm_.Run({"site", site(), "--run", bkm_.out(), "--json"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json report = *ParseJson(result.out, "stdout");
  EXPECT_EQ(report["cells"], 2);
  EXPECT_EQ(report["pages"], 5);
  const Json cell = BkmUnderTest::CellOf(bkm_.ReadRun(), "import_raises");
  const std::string name = fs::path(cell["dir"].get<std::string>()).filename();
  bool found = false;
  for (const auto& entry : fs::recursive_directory_iterator(site()))
    found = found || entry.path().filename() == name + ".html";
  EXPECT_TRUE(found);
  EXPECT_THAT(*ReadFile(site() / "index.html"), HasSubstr("No pair of versions was run"));
}

TEST_F(SiteCommandTest, WhatCannotBeUsedIsToldInASentence) {
  EXPECT_THAT(Complaint({"site", site(), "--run", bkm_.folder() / "nowhere"}),
              HasSubstr("FOLDER/nowhere"));
  ASSERT_TRUE(WriteFile(bkm_.folder() / "run/run.json", "{\"schema\": 7}").ok());
  EXPECT_THAT(Complaint({"site", site(), "--run", bkm_.folder() / "run"}), HasSubstr("schema"));
  EXPECT_THAT(Complaint({"site", site()}), HasSubstr("--run is required"));
}

TEST_F(SiteCommandTest, FilesOfAnotherKindAreToldInASentence) {
  ASSERT_EQ(bkm_.Run({"run", bkm_.WriteMatrix({"passes"}), "--quiet"}).exit_code, 0);
  const fs::path other = bkm_.folder() / "other.json";
  ASSERT_TRUE(WriteFile(other, "{\"schema\": 1}").ok());
  const auto with = [&](const char* option, const fs::path& path) {
    return Complaint({"site", site(), "--run", bkm_.out(), option, path});
  };
  EXPECT_THAT(with("--table", other), HasSubstr("FOLDER/other.json"));
  EXPECT_THAT(with("--map", other), HasSubstr("FOLDER/other.json"));
  EXPECT_EQ(
      with("--history", other),
      "bkm: FOLDER/other.json: is not a bisect.json, timeline.json or peel.json of schema 1\n");
  EXPECT_THAT(with("--history", bkm_.out()),
              HasSubstr("holds no bisect.json, timeline.json or peel.json"));
  EXPECT_THAT(with("--detection", other), HasSubstr("is not a detection table of schema 1"));
}

}  // namespace
}  // namespace bkm
