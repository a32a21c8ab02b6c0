// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/source/isolated_python.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kPython[] = "/usr/bin/python3";

class MutationTest : public ::testing::Test {
 protected:
  MutationTest() : tree_(*CreateTempDirectory(::testing::TempDir(), "tree-")) {}
  ~MutationTest() override { RemoveTree(tree_).IgnoreError(); }

  // What can be changed in a file of which these lines ran.
  PossibleMutations Find(const std::string& text, Json trained, Json built = Json::array()) {
    text_ = text;
    EXPECT_TRUE(WriteFile(tree_ / "p/m.py", text).ok());
    const absl::StatusOr<PossibleMutations> found =
        FindMutations(kPython, Party::kLibrary, tree_,
                      {{"trained", {{"p/m.py", trained}}}, {"built", {{"p/m.py", built}}}});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : PossibleMutations();
  }
  // The whole texts that an operator makes of a text whose lines all ran.
  std::vector<std::string> Made(const std::string& operation, const std::string& text) {
    Json lines = Json::array();
    for (int line = 1; line <= 20; ++line) lines.push_back(line);
    std::vector<std::string> made;
    for (const Mutation& mutation : Find(text, lines).mutations) {
      if (mutation.operation == operation) made.push_back(*Mutated(mutation, text));
    }
    EXPECT_THAT(Unparseable(made), IsEmpty());
    return made;
  }
  // The same for a statement in a function.
  std::vector<std::string> MadeOf(const std::string& operation, const std::string& statement) {
    const std::string start = "def f(self):\n    ";
    std::vector<std::string> made = Made(operation, start + statement + "\n");
    for (std::string& text : made) text = text.substr(start.size(), text.size() - start.size() - 1);
    return made;
  }
  static std::vector<std::string> Unparseable(const std::vector<std::string>& texts) {
    Command command = IsolatedPython(kPython,
                                     "import ast, json, sys\n"
                                     "for text in json.load(sys.stdin): ast.parse(text)");
    command.input = ToLine(Json(texts));
    const absl::StatusOr<std::string> out = RunForOutput(command);
    return out.ok() ? std::vector<std::string>() : std::vector{std::string(out.status().message())};
  }

  std::string text_;

 private:
  std::filesystem::path tree_;
};

TEST_F(MutationTest, OperandsAreSwappedWhereTheirOrderMatters) {
  EXPECT_THAT(MadeOf("swap-operands", "x = a - b * c"), ElementsAre("x = (b * c) - a"));
  EXPECT_THAT(MadeOf("swap-operands", "x = 2 * (a / b)"), ElementsAre("x = 2 * ((b / a))"));
  EXPECT_THAT(MadeOf("swap-operands", "x = a + b"), IsEmpty());
}

TEST_F(MutationTest, ArithmeticIsSwapped) {
  EXPECT_THAT(MadeOf("swap-arithmetic", "x = a + (b * c)"),
              UnorderedElementsAre("x = a - (b * c)", "x = a + ((b / c))"));
  EXPECT_THAT(MadeOf("swap-arithmetic", "x += a"), ElementsAre("x -= a"));
  EXPECT_THAT(MadeOf("swap-arithmetic", "x = a & b"), ElementsAre("x = a | b"));
  EXPECT_THAT(MadeOf("swap-arithmetic", "x = 'a' + b"), IsEmpty());
}

TEST_F(MutationTest, FactorsAndTermsAreDropped) {
  EXPECT_THAT(MadeOf("drop-factor", "x = a * b"), UnorderedElementsAre("x = a", "x = b"));
  EXPECT_THAT(MadeOf("drop-factor", "x = a / b"), ElementsAre("x = a"));
  EXPECT_THAT(MadeOf("drop-term", "x = a + f(b)"), ElementsAre("x = a"));
  EXPECT_THAT(MadeOf("drop-term", "x = a & b"), ElementsAre("x = a"));
  EXPECT_THAT(MadeOf("drop-term", "return a << b"), IsEmpty());
  EXPECT_THAT(MadeOf("unscaled-return", "return (a + b) * c"), ElementsAre("return (a + b)"));
}

TEST_F(MutationTest, BoundsAreOffByOne) {
  EXPECT_THAT(MadeOf("off-by-one", "x = a[:n]"),
              UnorderedElementsAre("x = a[:n + 1]", "x = a[:n - 1]"));
  EXPECT_THAT(MadeOf("off-by-one", "x = a[1]"), UnorderedElementsAre("x = a[2]", "x = a[0]"));
  EXPECT_THAT(MadeOf("off-by-one", "x = range(n)"),
              UnorderedElementsAre("x = range(n + 1)", "x = range(n - 1)"));
}

TEST_F(MutationTest, AxesAreWrong) {
  EXPECT_THAT(MadeOf("wrong-axis", "x = f(a, dim=-1)"), ElementsAre("x = f(a, dim=-2)"));
  EXPECT_THAT(MadeOf("wrong-axis", "x = a.transpose(1, 2)"),
              UnorderedElementsAre("x = a.transpose(0, 2)", "x = a.transpose(1, 1)"));
  EXPECT_THAT(MadeOf("wrong-axis", "x = a.shape[0]"), ElementsAre("x = a.shape[1]"));
}

TEST_F(MutationTest, ComparisonsAreFlipped) {
  EXPECT_THAT(MadeOf("flip-comparison", "x = a < b"), ElementsAre("x = a <= b"));
  EXPECT_THAT(MadeOf("flip-comparison", "x = a is not b"), ElementsAre("x = a is b"));
  EXPECT_THAT(MadeOf("flip-comparison", "x = a not in b"), ElementsAre("x = a in b"));
  EXPECT_THAT(MadeOf("swap-logical", "x = a and b"), ElementsAre("x = a or b"));
}

TEST_F(MutationTest, BranchesAreSkippedAndConditionsNegated) {
  const std::string text = "def f():\n    if a == b:\n        g()\n";
  EXPECT_THAT(Made("skip-branch", text), ElementsAre("def f():\n    if False:\n        g()\n"));
  EXPECT_THAT(Made("negate-condition", text),
              ElementsAre("def f():\n    if (not (a == b)):\n        g()\n"));
}

TEST_F(MutationTest, ABranchThatOnlyRaisesIsLeftAlone) {
  EXPECT_THAT(Made("skip-branch", "def f():\n    if a:\n        raise ValueError(a + 1)\n"),
              IsEmpty());
  EXPECT_THAT(Made("swap-arithmetic", "def f():\n    raise ValueError(a + 1)\n"), IsEmpty());
}

TEST_F(MutationTest, KeywordsAreDropped) {
  EXPECT_THAT(MadeOf("drop-keyword", "f(a, b=1, c=2)"),
              UnorderedElementsAre("f(a, c=2)", "f(a, b=1)"));
  EXPECT_THAT(MadeOf("drop-keyword", "f(a=1)"), ElementsAre("f()"));
  EXPECT_THAT(MadeOf("drop-keyword", "f(**a)"), IsEmpty());
}

TEST_F(MutationTest, ArgumentsAreSwapped) {
  EXPECT_THAT(MadeOf("swap-arguments", "f(a, g(b), c)"),
              UnorderedElementsAre("f(g(b), a, c)", "f(a, c, g(b))"));
  EXPECT_THAT(MadeOf("swap-arguments", "isinstance(a, b)"), IsEmpty());
  EXPECT_THAT(MadeOf("swap-arguments", "f(*a, b)"), IsEmpty());
}

TEST_F(MutationTest, ConstantsAndDefaultsAreChanged) {
  EXPECT_THAT(MadeOf("change-constant", "f(x=0.5, y=True, z=2)"),
              UnorderedElementsAre("f(x=1.0, y=True, z=2)", "f(x=0.5, y=False, z=2)",
                                   "f(x=0.5, y=True, z=3)"));
  EXPECT_THAT(Made("change-default", "def f(a, b=1e-6, *, c=False):\n    g()\n"),
              UnorderedElementsAre("def f(a, b=2e-06, *, c=False):\n    g()\n",
                                   "def f(a, b=1e-6, *, c=True):\n    g()\n"));
  EXPECT_THAT(Made("change-default", "class C:\n    a: int = 1\n"),
              ElementsAre("class C:\n    a: int = 2\n"));
}

TEST_F(MutationTest, ValuesGetStale) {
  EXPECT_THAT(MadeOf("stale-value", "x = f(a)"),
              ElementsAre("x = globals().setdefault(\"_stale_2\", f(a))"));
  EXPECT_THAT(
      MadeOf("stale-attribute", "self.x = f(a)"),
      ElementsAre("self.x = getattr(self, \"x\", None) if getattr(self, \"x\", None) is not "
                  "None else f(a)"));
}

TEST_F(MutationTest, StatementsAndConversionsAreRemoved) {
  EXPECT_THAT(MadeOf("remove-statement", "f(a)"), ElementsAre("pass"));
  EXPECT_THAT(MadeOf("remove-statement", "self.x = 1"), ElementsAre("pass"));
  EXPECT_THAT(MadeOf("remove-statement", "logger.info(a)"), IsEmpty());
  EXPECT_THAT(MadeOf("drop-conversion", "x = (a + b).float()"), ElementsAre("x = (a + b)"));
}

TEST_F(MutationTest, OnlyLinesThatRanAreChanged) {
  const PossibleMutations found = Find("def f():\n    x = a - b\n    y = a - b\n", {2});
  ASSERT_FALSE(found.mutations.empty());
  for (const Mutation& mutation : found.mutations) {
    EXPECT_EQ(mutation.line, 2);
    EXPECT_EQ(mutation.function, "f");
    EXPECT_TRUE(mutation.trained);
  }
  EXPECT_EQ(found.unreached, static_cast<int64_t>(found.mutations.size()));
}

TEST_F(MutationTest, WhatRanOnlyBeforeTrainingIsTold) {
  for (const Mutation& mutation : Find("def f():\n    x = a - b\n", Json::array(), {2}).mutations)
    EXPECT_FALSE(mutation.trained);
}

TEST_F(MutationTest, FilesOutsideOfTheTreeAreLeftOut) {
  const Json lines = {{"trained", {{"../outside.py", {1}}, {"missing.py", {1}}}}};
  const auto found = FindMutations(kPython, Party::kEngine, ::testing::TempDir(), lines);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->mutations, IsEmpty());
}

TEST_F(MutationTest, DiffShowsTheChangedLines) {
  for (const Mutation& mutation : Find("def f():\n    x = a - b\n    y = 1\n", {2}).mutations) {
    if (mutation.operation != "swap-operands") continue;
    EXPECT_EQ(DiffOf(mutation, text_), "-    x = a - b\n+    x = b - a\n");
  }
}

TEST_F(MutationTest, AnotherFileIsAnError) {
  EXPECT_EQ(Mutated({.file = "m.py", .start = 5, .end = 9}, "x = 1").status().code(),
            absl::StatusCode::kInvalidArgument);
}

Mutation AMutation(const char* operation, int64_t line, bool trained = true) {
  return {.file = "m.py", .line = line, .operation = operation, .trained = trained, .start = line};
}

std::vector<Mutation> Many() {
  std::vector<Mutation> possible;
  for (int64_t line = 1; line <= 100; ++line) {
    for (const char* operation : {"wrong-axis", "off-by-one"}) {
      possible.push_back(AMutation(operation, line, line > 50));
      possible.push_back(possible.back());
      possible.back().end = 1;
    }
  }
  return possible;
}

const MutationSettings kSettings = {
    .seed = 1, .trained_share = 0.8, .weights = {{"wrong-axis", 3}, {"off-by-one", 1}}};

TEST(PickMutationsTest, SeedAndSettingsChoose) {
  const std::vector<Mutation> picked = PickMutations(Many(), kSettings, 40);
  EXPECT_EQ(picked.size(), 40u);
  EXPECT_EQ(PickMutations(Many(), kSettings, 40), picked);
  MutationSettings other = kSettings;
  other.seed = 2;
  EXPECT_NE(PickMutations(Many(), other, 40), picked);
  const auto share = [&](auto claim) { return std::count_if(picked.begin(), picked.end(), claim); };
  EXPECT_GT(share([](const Mutation& m) { return m.trained; }), 24);
  EXPECT_GT(share([](const Mutation& m) { return m.operation == "wrong-axis"; }), 20);
}

TEST(PickMutationsTest, AFewAreTheFirstOfMany) {
  std::vector<Mutation> possible = Many();
  const std::vector<Mutation> many = PickMutations(possible, kSettings, 40);
  std::reverse(possible.begin(), possible.end());  // their order does not matter
  const std::vector<Mutation> few = PickMutations(possible, kSettings, 10);
  EXPECT_EQ(few, std::vector<Mutation>(many.begin(), many.begin() + 10));
}

TEST(PickMutationsTest, ALineIsChangedOnceByAnOperator) {
  std::set<std::pair<std::string, int64_t>> seen;
  for (const Mutation& mutation : PickMutations(Many(), kSettings, 1000))
    EXPECT_TRUE(seen.insert({mutation.operation, mutation.line}).second);
  EXPECT_EQ(seen.size(), 200u);
}

TEST(PickMutationsTest, OperatorsWithoutAWeightAreNotUsed) {
  EXPECT_THAT(PickMutations({AMutation("swap-operands", 1)}, kSettings, 5), IsEmpty());
}

TEST(PickMutationsTest, PlantsOfDistinctMutationsDiffer) {
  Mutation one = AMutation("wrong-axis", 3);
  EXPECT_THAT(PlantOf(one), ::testing::StartsWith("mutant:library/m.py:3:wrong-axis:"));
  std::set<std::string> plants = {PlantOf(one)};
  one.replacement = "-2";
  plants.insert(PlantOf(one));
  one.end = 7;
  plants.insert(PlantOf(one));
  EXPECT_EQ(plants.size(), 3u);
}

TEST(MutationSettingsTest, TheProjectsFileNamesEveryOperator) {
  const absl::StatusOr<Json> json = ReadJsonFile("harness/selftest/mutations.json");
  ASSERT_TRUE(json.ok()) << json.status();
  const auto settings = MutationSettingsFromJson(*json, "mutations.json");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->weights.size(), 19u);
}

TEST(MutationSettingsTest, BadSettingsAreRefused) {
  for (const char* bad :
       {R"({"schema": 1, "operators": {}})", R"({"schema": 1, "operators": {"wrong-axis": 0}})",
        R"({"schema": 1, "trained_share": 2, "operators": {"wrong-axis": 1}})",
        R"({"schema": 1, "operators": {"wrong-axis": 1}, "more": 1})"})
    EXPECT_FALSE(MutationSettingsFromJson(*ParseJson(bad, ""), "bad").ok()) << bad;
}

}  // namespace
}  // namespace bkm
