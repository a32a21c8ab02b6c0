// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/inherited_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class InheritedCellsTest : public ::testing::Test {
 protected:
  InheritedCellsTest() : root_(*CreateTempDirectory(::testing::TempDir(), "inherited-")) {
    for (const char* folder : {"before", "after"}) {
      EXPECT_TRUE(WriteFile(root_ / folder / "tensors/step0.safetensors", "numbers").ok());
    }
  }
  static Json Observation() {
    return {{"schema", 1},
            {"ending", {{"kind", "completed"}}},
            {"stages", {{{"stage", "import"}, {"seconds", 0.5}}}},
            {"steps", {{{"loss", 7.5}, {"seconds", 0.1}}}},
            {"usage", {{"wall_s", 3.0}}}};
  }
  std::string Difference(const Json& after) const {
    return FirstDifference(Observation(), root_ / "before", after, root_ / "after");
  }

  fs::path root_;
};

TEST_F(InheritedCellsTest, TimesMemoryAndReportsOfAccessDoNotCount) {
  Json after = Observation();
  after["stages"][0]["seconds"] = 9;
  after["steps"][0]["seconds"] = 9;
  after["usage"]["wall_s"] = 9;
  after["closure"] = {{"whole", true}};
  after["measured"] = "now";
  EXPECT_EQ(Difference(after), "");
}

TEST_F(InheritedCellsTest, JudgedFactsCountToTheLastBit) {
  for (const auto& [pointer, value] : {std::pair<const char*, Json>("/ending/kind", "raised"),
                                       std::pair<const char*, Json>("/stages/0/stage", "load"),
                                       std::pair<const char*, Json>("/steps/0/loss", 7.500001),
                                       std::pair<const char*, Json>("/backend", Json::object())}) {
    Json after = Observation();
    after[Json::json_pointer(pointer)] = value;
    EXPECT_NE(Difference(after), "") << pointer;
  }
}

TEST_F(InheritedCellsTest, TensorsCountToTheLastBit) {
  const fs::path after = root_ / "after/tensors";
  ASSERT_TRUE(WriteFile(after / "step0.safetensors", "Numbers").ok());
  EXPECT_EQ(Difference(Observation()), "tensors/step0.safetensors");
  ASSERT_TRUE(WriteFile(after / "step0.safetensors", "numbers").ok());
  EXPECT_EQ(Difference(Observation()), "");
  ASSERT_TRUE(WriteFile(after / "step1.safetensors", "numbers").ok());
  EXPECT_EQ(Difference(Observation()), "tensors/step1.safetensors");
  fs::remove_all(after);
  EXPECT_EQ(Difference(Observation()), "tensors/step0.safetensors");
  fs::create_directories(after);
  ASSERT_EQ(::mkfifo((after / "step0.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(Difference(Observation()), "tensors/step0.safetensors");
}

TEST_F(InheritedCellsTest, PathsOfTreesAndAddressesInMessagesDoNotCount) {
  const auto difference = [&](const char* one, const char* other) {
    Json before = Observation(), after = Observation();
    before["exception"] = {{"message", one}};
    after["exception"] = {{"message", other}};
    return FirstDifference(before, root_ / "before", after, root_ / "after");
  };
  EXPECT_EQ(difference("cannot import 'x' from 'a.b' (/cache/one/tree/a/b.py)",
                       "cannot import 'x' from 'a.b' (/cache/two/tree/a/b.py)"),
            "");
  EXPECT_EQ(difference("<A object at 0x7f001>", "<A object at 0x7f9ab>"), "");
  EXPECT_EQ(difference("no file /one/a.py", "no file /one/b.py"), "exception");
  EXPECT_EQ(difference("1/2 done", "1/3 done"), "exception");
}

TEST_F(InheritedCellsTest, SampleIsOneInSoManyAndDependsOnTheSeed) {
  const InheritedCells none(0, 1), all(1, 1), some(20, 1), others(20, 2);
  int sampled = 0, differently = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string id = absl::StrCat("cell ", i);
    EXPECT_FALSE(none.IsSampled(id));
    EXPECT_TRUE(all.IsSampled(id));
    sampled += some.IsSampled(id);
    differently += some.IsSampled(id) != others.IsSampled(id);
  }
  EXPECT_GT(sampled, 60);
  EXPECT_LT(sampled, 140);
  EXPECT_GT(differently, 100);
}

TEST_F(InheritedCellsTest, DifferenceNamesAllCellsThatTookTheSame) {
  ASSERT_TRUE(WriteFile(root_ / "before/observation.json", ToText(Observation())).ok());
  InheritedCells cells(1, 1);
  cells.Add(3, {"source", root_ / "before"});
  cells.Add(4, {"source", root_ / "another"});
  cells.Add(5, {"source", root_ / "before"});
  cells.Expect(7, {"source", root_ / "before"});
  EXPECT_EQ(cells.Check(6, "unexpected", Json::object(), root_ / "after"), std::nullopt);
  const auto difference = cells.Check(7, "sampled", Json::object(), root_ / "after");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->what, "ending");
  EXPECT_THAT(difference->cells, ElementsAre(3, 5));
  EXPECT_EQ(cells.ToJson()["differences"],
            (Json{{{"cell", "sampled"}, {"from", "source"}, {"what", "ending"}}}));
}

}  // namespace
}  // namespace bkm
