// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Finds by real runs the torchtitan commits with which verl v0.8.0 began and ceased to work. Needs
// the mirrors ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

// The result of a search, and of a second search that finds every result stored.
struct Searched {
  Json first, again;
};
absl::StatusOr<Searched> Bisect(const std::string& name, std::vector<std::string> ends) {
  std::vector<std::string> arguments = {"bisect",
                                        "--engine",
                                        "verl-torchtitan@git:verl@v0.8.0",
                                        "--attention",
                                        "flex",
                                        "--axis",
                                        "library",
                                        "--json",
                                        "--out",
                                        RealRunFolder(name).string()};
  arguments.insert(arguments.end(), ends.begin(), ends.end());
  Searched searched;
  for (Json* json : {&searched.first, &searched.again}) {
    ASSIGN_OR_RETURN(const ProcessResult result, RunRealBkm(arguments));
    if (result.exit_code > 1) return absl::UnavailableError(result.err);
    ASSIGN_OR_RETURN(*json, ParseJson(result.out, name));
  }
  return searched;
}

// The expected commits were found by runs. A newer mirror has more commits, but also these.
void ExpectCulprit(const Searched& searched, const char* direction, const char* culprit,
                   const char* parent) {
  const Json& json = searched.first;
  ASSERT_EQ(json["status"], "found") << json["why"];
  EXPECT_EQ(json["direction"], direction);
  EXPECT_EQ(json["culprit"]["commit"].get<std::string>().substr(0, 9), culprit);
  EXPECT_EQ(json["parents"][0]["commit"].get<std::string>().substr(0, 9), parent);
  EXPECT_EQ(json["made_by"], "commit");
  EXPECT_EQ(searched.again["measured"], 0);
  EXPECT_EQ(searched.again["culprit"], json["culprit"]);
}

TEST(HistoryTest, VerlV080CeasedToWorkWhenTheOptimizersConfigChanged) {
  if (Mirrors().empty()) GTEST_SKIP() << "no mirrors: set BKM_GIT_MIRRORS to their folder";
  const absl::StatusOr<Searched> searched =
      Bisect("broke", {"--library", "git:torchtitan@main", "--good", "baba6d82e"});
  if (IsNoNetwork(searched.status())) GTEST_SKIP() << searched.status();
  ASSERT_TRUE(searched.ok()) << searched.status();
  ExpectCulprit(*searched, "broke", "632f67f12", "baba6d82e");
  EXPECT_EQ(searched->first["culprit"]["reason"], "unexpected-keyword");
  EXPECT_THAT(*ReadFile(RealRunFolder("broke") / "search.log"),
              HasSubstr("suspect of the static check: torchtitan 632f67f12"));
}

TEST(HistoryTest, VerlV080BeganToWorkInApril) {
  if (Mirrors().empty()) GTEST_SKIP() << "no mirrors: set BKM_GIT_MIRRORS to their folder";
  const absl::StatusOr<Searched> searched =
      Bisect("mended",
             {"--library", "git:torchtitan@baba6d82e", "--good", "baba6d82e", "--bad", "v0.2.1"});
  if (IsNoNetwork(searched.status())) GTEST_SKIP() << searched.status();
  ASSERT_TRUE(searched.ok()) << searched.status();
  ExpectCulprit(*searched, "mended", "c4b409af2", "a2b5ee66c");
  EXPECT_EQ(searched->first["parents"][0]["reason"], "missing-argument");
}

// The plane of the commits before v0.8.0 and of torchtitan's commits until the culprit.
TEST(HistoryTest, TheMapDecidesItsBoundariesByRunsAndWhichAnswers) {
  if (Mirrors().empty()) GTEST_SKIP() << "no mirrors: set BKM_GIT_MIRRORS to their folder";
  const std::string folder = RealRunFolder("map").string();
  const auto ran = RunRealBkm({"map", "--since", "2026-06-01", "--engine-tip", "v0.8.0",
                               "--library-tip", "632f67f12", "--out", folder});
  if (ran.ok() && !ran->ok() && IsNoNetwork(ran->err)) GTEST_SKIP() << ran->err;
  ASSERT_TRUE(ran.ok() && ran->ok()) << ran.status() << (ran.ok() ? ran->err : "");
  const Json map = *ReadJsonFile(RealRunFolder("map") / "map.json");
  EXPECT_EQ(map["finished"], true);
  EXPECT_FALSE(map["cells"].empty());
  EXPECT_NE(ReadFile(RealRunFolder("map") / "map.svg")->find("</svg>"), std::string::npos);

  const auto asked =
      RunRealBkm({"which", "--engine", "git:verl@v0.8.0", "--map", folder, "--json"});
  ASSERT_TRUE(asked.ok() && asked->ok()) << asked.status() << (asked.ok() ? asked->err : "");
  const Json newest = ParseJson(asked->out, "which")->at("works_with").back()["newest"];
  EXPECT_EQ(newest["commit"].get<std::string>().substr(0, 9), "baba6d82e");
  EXPECT_EQ(newest["proof"], "ran");
}

// Cells that fail the static check are not run, but measured results stay.
TEST(HistoryTest, TheStaticCheckSparesARunAndForgetsNone) {
  const auto verdict = [](std::vector<std::string> more) -> absl::StatusOr<std::string> {
    std::vector<std::string> arguments = {"--engine",     "verl-torchtitan@pypi:verl==0.9.1",
                                          "--library",    "pypi:torchtitan==0.3.0",
                                          "--attention",  "flex",
                                          "--no-controls"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSIGN_OR_RETURN(const Json run, RunRealCells(std::move(arguments), "static"));
    const Json& cell = run["cells"][0];
    return absl::StrCat(cell["verdict"].get<std::string>(), " ", cell["reason"].get<std::string>());
  };
  const absl::StatusOr<std::string> spared = verdict({"--static-check"});
  if (IsNoNetwork(spared.status())) GTEST_SKIP() << spared.status();
  ASSERT_TRUE(spared.ok()) << spared.status();
  EXPECT_EQ(*spared, "skipped api-check");
  EXPECT_EQ(*verdict({}), "broken module-missing");
  EXPECT_EQ(*verdict({"--static-check"}), "broken module-missing");
}

}  // namespace
}  // namespace bkm
