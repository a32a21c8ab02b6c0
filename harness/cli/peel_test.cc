// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm bisect --peel through the real program, worker and git, on small repositories with known,
// stacked culprits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/history_fixture.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Uses three parts of the library, one after the other.
constexpr char kAsks[] = R"(
import fake_library
from fake_library.first import one
from fake_library.second import two
import fake_library.third
fake_library.third.go()
)";

class PeelTest : public HistoryFixture {
 protected:
  PeelTest() : HistoryFixture(kAsks) {
    library_.Write("fake_library/first.py", "one = 1\n");
    library_.Write("fake_library/second.py", "two = 2\n");
    library_.Write("fake_library/third.py", "def go():\n    pass\n");
    first_ = Commit();
  }
  // A commit that writes one file of the package.
  std::string Change(const std::string& file, const std::string& text) {
    library_.Write("fake_library/" + file, text);
    ++count_;
    return library_.Commit("Change " + file, Day());
  }
  ProcessResult Peel() const {
    return bkm_.Run(CommandLine("bisect", {"--peel", "--good", first_}));
  }
  Json Result() const { return *ReadJsonFile(bkm_.out() / "peel.json"); }

  std::string first_;
};

// "COMMIT way" for each culprit, in order; the way is empty if it was not removed.
std::vector<std::string> Culprits(const Json& result) {
  std::vector<std::string> lines;
  for (const Json& culprit : result["culprits"]) {
    lines.push_back(absl::StrCat(
        culprit["commit"]["commit"].get<std::string>(), " ",
        culprit["taken_out_by"].is_null() ? "" : culprit["taken_out_by"].get<std::string>()));
  }
  return lines;
}

TEST_F(PeelTest, NamesStackedCulpritsInTheOrderInWhichTheEngineMeetsThem) {
  const std::string third = Change("third.py", "def go():\n    raise RuntimeError('gone')\n");
  Commit();
  const std::string one = Change("first.py", "uno = 1\n");
  Commit();
  const std::string two = Change("second.py", "dos = 2\n");
  Commit();

  const ProcessResult result = Peel();

  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  Json json = Result();
  EXPECT_THAT(Culprits(json), ElementsAre(one + " revert", two + " revert", third + " revert"));
  EXPECT_EQ(json["works"], true);
  EXPECT_EQ(json["culprits"][0]["confirmed"], "by run");
  EXPECT_EQ(json["culprits"][2]["failure"]["reason"], "raised");
  EXPECT_THAT(result.out, HasSubstr("Without these commits the pair is ok"));
  EXPECT_TRUE(SchemaAccepts("harness/history/peel.schema.json", json));
  json["culprits"][0]["confirmed"] = "maybe";
  EXPECT_FALSE(SchemaAccepts("harness/history/peel.schema.json", json));

  ASSERT_EQ(Peel().exit_code, 0);
  EXPECT_EQ(Result()["measured"], 0) << "what was measured is not measured again";
  EXPECT_EQ(Culprits(Result()), Culprits(json));
}

TEST_F(PeelTest, WhatBuildsOnACulpritIsTakenOutWithIt) {
  const std::string one = Change("first.py", "uno = 1\n");
  const std::string third = Change("third.py", "def go():\n    raise RuntimeError('gone')\n");
  const std::string last_good = Commit();
  // Later commits change the same line and depend on it: neither revert nor older files can work.
  library_.Write("fake_library/third.py",
                 "def go():\n    raise RuntimeError('gone')  # for good\n\n\nneeded = 1\n");
  const std::string builds_on_it = Commit("from fake_library.third import needed\n");
  Commit("from fake_library.third import needed\n");

  const ProcessResult result = Peel();

  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const Json json = Result();
  EXPECT_TRUE(SchemaAccepts("harness/history/peel.schema.json", json));
  EXPECT_THAT(Culprits(json),
              ElementsAre(one + " revert", third + " revert", builds_on_it + " older-files"));
  EXPECT_EQ(json["culprits"][1]["taken_out_at"]["commit"], last_good);
  EXPECT_EQ(json["culprits"][1]["built_on_by"]["commit"], builds_on_it);
  EXPECT_EQ(json["culprits"][2]["confirmed"], "builds on a culprit");
  EXPECT_EQ(json["culprits"][2]["builds_on"]["commit"], third);
  EXPECT_EQ(json["works"], true);
  EXPECT_EQ(json["reached"], json["newest"]);
  EXPECT_THAT(json["culprits"][1]["note"].get<std::string>(),
              AllOf(HasSubstr("revert: later changes conflict with it in third.py"),
                    HasSubstr("older-files: the pair stops earlier")));
}

TEST_F(PeelTest, WhereLaterChangesMeetACulpritItsFilesAreTakenAsTheyWereBefore) {
  const std::string one = Change("first.py", "uno = 1\n");
  Change("first.py", "uno = 11\n");

  ASSERT_EQ(Peel().exit_code, 0);

  EXPECT_THAT(Culprits(Result()), ElementsAre(one + " older-files"));
}

TEST_F(PeelTest, APairThatWorksHasNothingToPeel) {
  Commit();
  const ProcessResult result = Peel();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Nothing is broken: the pair is ok"));
  EXPECT_THAT(Culprits(Result()), IsEmpty());
}

TEST_F(PeelTest, OnlyTheLibrarysHistoryCanBePeeled) {
  Commit();
  std::vector<std::string> arguments = CommandLine("bisect", {"--peel"});
  arguments[3] = "engine";
  const ProcessResult result = bkm_.Run(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("--peel removes commits from the library: it needs --axis library"));
}

}  // namespace
}  // namespace bkm
