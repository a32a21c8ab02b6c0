// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "harness/base/files.h"
#include "harness/judge/claims.h"
#include "harness/report/command_text.h"
#include "harness/site/cell_page.h"
#include "harness/site/testing_site.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Checks the tags and texts of a whole site.
class SiteTest : public ::testing::Test {
 protected:
  SiteTest() {
    const absl::StatusOr<SiteReport> report = WriteSite(ASite(folder_), site());
    HARNESS_CHECK(report.ok()) << report.status();
    report_ = *report;
    for (const auto& entry : fs::recursive_directory_iterator(site())) {
      if (entry.path().extension() == ".html")
        pages_[fs::relative(entry.path(), site()).string()] = *ReadFile(entry.path());
    }
  }
  ~SiteTest() override { RemoveTree(folder_).IgnoreError(); }

  fs::path site() const { return folder_ / "site"; }

  static std::vector<std::string> AllMatches(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern);
    std::vector<std::string> found;
    for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
      found.push_back((*it)[1].str());
    return found;
  }
  static std::vector<std::string> IdsOf(const std::string& page) {
    return AllMatches(page, " id=\"([^\"]*)\"");
  }

  const fs::path folder_ = *CreateTempDirectory(fs::path(::testing::TempDir()), "site-");
  SiteReport report_;
  std::map<std::string, std::string> pages_;
};

TEST_F(SiteTest, HasEveryKindOfPage) {
  std::vector<std::string> names;
  for (const auto& [name, page] : pages_) {
    if (name.find("runs/") != 0) names.push_back(name);
  }
  EXPECT_THAT(
      names, ElementsAre("about.html", "detection.html", "history.html", "index.html", "map.html"));
  EXPECT_EQ(pages_.count("runs/-i-bkm--i-/index.html"), 1u);
  EXPECT_EQ(report_.cells, 5);
  EXPECT_EQ(report_.pages, static_cast<int>(pages_.size()));
  EXPECT_EQ(pages_.size(), 11u);
}

TEST_F(SiteTest, EveryInternalLinkLeadsSomewhere) {
  int links = 0;
  for (const auto& [name, page] : pages_) {
    for (const std::string& link : AllMatches(page, " (?:href|src)=\"([^\"]*)\"")) {
      if (link.find("https://github.com/") == 0) continue;
      ++links;
      const size_t hash = link.find('#');
      const std::string file = link.substr(0, hash);
      const fs::path target =
          file.empty() ? site() / name : site() / fs::path(name).parent_path() / file;
      EXPECT_TRUE(fs::exists(target)) << name << " links to " << link;
      if (hash == std::string::npos || !fs::exists(target)) continue;
      EXPECT_THAT(IdsOf(*ReadFile(target)), ::testing::Contains(link.substr(hash + 1)))
          << name << " links to " << link;
    }
  }
  EXPECT_GT(links, 100);
}

TEST_F(SiteTest, IdsAreUniqueOnTheirPage) {
  for (const auto& [name, page] : pages_) {
    const std::vector<std::string> ids = IdsOf(page);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size()) << name;
  }
}

TEST_F(SiteTest, WhatSubjectsWroteIsTextEverywhere) {
  for (const auto& [name, page] : pages_) {
    EXPECT_THAT(AllMatches(page, "(<script[^>]*>)"),
                ElementsAre("<script src=\"" + RelativeLink(name, "site.js") + "\">"))
        << name;
    EXPECT_THAT(AllMatches(page, "(<img)"), IsEmpty()) << name;
    // Outside of quotes, a tag has only our own attributes.
    const std::string bare = std::regex_replace(page, std::regex("\"[^\"]*\""), "\"\"");
    EXPECT_THAT(AllMatches(bare, "<[^>]*[ \"](on[a-z]+|style)="), IsEmpty()) << name;
    EXPECT_EQ(page.find('\x1b'), std::string::npos) << name;
    EXPECT_EQ(page.find("\xe2\x80\xae"), std::string::npos) << name;
  }
  EXPECT_THAT(pages_["index.html"], HasSubstr("&lt;script&gt;planted=1&lt;/script&gt;"));
  EXPECT_THAT(pages_["history.html"], HasSubstr("&lt;script&gt;planted=1&lt;/script&gt;"));
}

TEST_F(SiteTest, TheShareOfMutantsThatTurnRedStandsBesideTheTable) {
  const std::string figure = "1 of 2 mutants that changed a number are red (50.0 %)";
  EXPECT_THAT(pages_["index.html"], HasSubstr(figure));
  EXPECT_THAT(pages_["detection.html"], HasSubstr(figure));
  EXPECT_THAT(pages_["detection.html"], HasSubstr("Changes that no check saw"));
}

TEST_F(SiteTest, OnlyAnUnexpectedOutcomeOfAPlantedFaultStandsOut) {
  EXPECT_THAT(AllMatches(pages_["detection.html"], "<strong>([^<]*)</strong>"),
              ElementsAre("ESCAPED"));
}

TEST_F(SiteTest, NothingIsLoadedFromElsewhere) {
  for (const auto& [name, page] : pages_) {
    EXPECT_THAT(AllMatches(page, " src=\"([a-z]+:[^\"]*)\""), IsEmpty()) << name;
    EXPECT_THAT(AllMatches(page, "<link[^>]* href=\"([a-z]+:[^\"]*)\""), IsEmpty()) << name;
    EXPECT_THAT(page, HasSubstr("default-src &#39;none&#39;")) << name;
  }
  const std::string style = *ReadFile(site() / "site.css");
  EXPECT_EQ(style.find("url("), std::string::npos);
  EXPECT_EQ(style.find("@import"), std::string::npos);
}

TEST_F(SiteTest, AHistoryOfStackedCulpritsSaysHowFarItCame) {
  EXPECT_THAT(pages_["history.html"],
              AllOf(HasSubstr("Without these commits the pair at ddddddddd (2026-06-04) is ok. "
                              "Stopped: "),
                    HasSubstr("revert, up to ddddddddd (2026-06-04)")));
}

TEST_F(SiteTest, ABisectionThatCannotTellCommitFromRuntimeSaysSo) {
  BisectReport report = ABisectReport();
  report.made_by = MadeBy::kUndecided;
  EXPECT_THAT(
      HistoryPage({{report}}, SiteRuns()).main.html(),
      HasSubstr("Found: this commit or a change of the runtime broke it; which of them could "
                "not be judged."));
}

TEST_F(SiteTest, LogsAreToldApartByTheirKeys) {
  const fs::path file = folder_ / "log.json";
  const auto kind = [&](const OrderedJson& json) {
    EXPECT_TRUE(WriteFile(file, ToText(json)).ok());
    const absl::StatusOr<HistoryLog> log = ReadHistoryLog(file);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? log->report.index() : std::variant_npos;
  };
  EXPECT_EQ(kind(ToJson(ABisectReport())), 0u);
  EXPECT_EQ(kind(ToJson(ATimelineReport())), 1u);
  EXPECT_EQ(kind(ToJson(APeelReport())), 2u);
}

TEST_F(SiteTest, FrontPageBeginsWithTheAnswer) {
  const std::string& page = pages_["index.html"];
  const size_t answer = page.find("Install verl 0.9.1 with torchtitan");
  ASSERT_NE(answer, std::string::npos);
  EXPECT_LT(answer, page.find("uv venv --python 3.11"));
  EXPECT_LT(page.find("uv venv --python 3.11"), page.find("<table"));
  EXPECT_THAT(page, HasSubstr("No pair of releases works (1 was run)."));
}

TEST_F(SiteTest, ARowSaysUpToWhenItsSourcesWereKnown) {
  EXPECT_THAT(*ReadFile(site() / "index.html"),
              HasSubstr("sources known up to torchtitan 2026-06-05"));
}

TEST_F(SiteTest, ASiteIsReplacedAndAForeignFolderIsNot) {
  ASSERT_TRUE(WriteFile(site() / "old.html", "x").ok());
  EXPECT_TRUE(WriteSite(ASite(folder_), site()).ok());
  EXPECT_FALSE(fs::exists(site() / "old.html"));

  const fs::path foreign = folder_ / "foreign";
  ASSERT_TRUE(WriteFile(foreign / "thesis.txt", "x").ok());
  EXPECT_EQ(
      std::string(WriteSite(ASite(folder_), foreign).status().message()),
      foreign.string() + ": holds files that are not a bkm site; name a new or an empty folder");
  EXPECT_TRUE(fs::exists(foreign / "thesis.txt"));
}

TEST_F(SiteTest, AnUnfinishedRunIsRefused) {
  const RunDirectory directory(folder_ / "half");
  ASSERT_TRUE(directory.WriteRun({.matrix = "half", .cells = SiteCells()}).ok());
  SiteRuns runs;
  EXPECT_THAT(std::string(runs.Add(folder_ / "half").message()),
              HasSubstr("half: this run is not finished"));
}

TEST_F(SiteTest, RunsOfOneMatrixHaveFoldersOfTheirOwn) {
  WriteSiteRun(folder_ / "again");
  SiteRuns runs;
  ASSERT_TRUE(runs.Add(folder_ / "run").ok());
  ASSERT_TRUE(runs.Add(folder_ / "again").ok());
  ASSERT_TRUE(runs.Add(folder_ / "run/").ok()) << "named twice";
  ASSERT_EQ(runs.all().size(), 2u);
  EXPECT_EQ(runs.all()[1]->index(), "runs/-i-bkm--i--2/index.html");
}

TEST_F(SiteTest, APageOfACellTellsItsStory) {
  const CellRecord broken = SiteCells()[0];
  SiteRuns runs;
  ASSERT_TRUE(runs.Add(folder_ / "run").ok());
  const std::string& page = pages_[runs.all()[0]->PageOf(broken)];
  for (const char* part :
       {"verl-torchtitan 0.9.1 \u00d7 torchtitan 0.3.0, flex", "module-missing",
        "a module that is imported does not exist", "interface", "ended here", "What stopped it",
        "import &lt;b&gt;torchtitan&lt;/b&gt;",
        "bkm run --engine verl-torchtitan@pypi:verl==0.9.1 --library pypi:torchtitan==0.3.0"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST_F(SiteTest, APageOfACellOfSeveralRanksShowsEachRankAndTheCollectives) {
  SiteRuns runs;
  ASSERT_TRUE(runs.Add(folder_ / "run").ok());
  CellRecord cell = SiteCells()[3];
  cell.cell.probe.layout = *ParseLayout("dp_shard=2");
  const std::string page = CellPage(runs, *runs.all()[0], cell, ADrawnEvidence()).main.html();
  for (const char* part :
       {"<dt>Layout</dt><dd>dp_shard=2: 2 ranks, 2 of them data-parallel</dd>",
        "<th scope=\"row\">rank 1</th><td>1 of 2</td><td>3 to 4</td><td>raised",
        "<td>avg</td><td class=\"number\">2</td>",
        "<td class=\"number\">270</td><td class=\"number\">rank 0: 3, rank 1: 5</td>"
        "<td>backward</td>",
        "<td>bkm&#39;s own</td>", "<td>rank 1</td><td class=\"number\">0.5</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  cell.cell.probe.layout = Layout();
  CellEvidence alone = ADrawnEvidence();
  alone.observation->ranks.clear();
  const std::string other = CellPage(runs, *runs.all()[0], cell, alone).main.html();
  EXPECT_THAT(other, AllOf(HasSubstr("<dt>Layout</dt><dd>1 rank</dd>"),
                           Not(HasSubstr("<h2 id=\"ranks\">"))));
}

TEST_F(SiteTest, ThePageOnJudgingHasEveryClaim) {
  const std::string& page = pages_["about.html"];
  for (const Claim* claim : Claims()) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("<code>", claim->name, "</code>: ")));
  }
  EXPECT_THAT(page, HasSubstr("forward that trains nothing (verl&#39;s <code>infer_batch</code>)"));
  EXPECT_THAT(page, HasSubstr("no meaning here: harness/kernels/README.md</td>"));
  EXPECT_THAT(page, Not(HasSubstr("](")));
}

// Of checks that share a rung, each can fail it: the mask is the verdict here.
TEST_F(SiteTest, ARungOfTheLadderIsRedWhicheverOfItsClaimsFails) {
  SiteRuns runs;
  ASSERT_TRUE(runs.Add(folder_ / "run").ok());
  const SiteRun& run = *runs.all()[0];
  CellEvidence evidence = ADrawnEvidence();
  const auto page = [&] {
    return CellPage(runs, run, run.record().cells[3], evidence).main.html();
  };
  EXPECT_THAT(page(), Not(HasSubstr("not as asked either")));
  evidence.verdict.findings.push_back(
      {.claim = "precision", .outcome = ClaimOutcome::kFailed, .stage = Stage::kForward});
  EXPECT_THAT(page(), HasSubstr("not as asked either"));
}

TEST_F(SiteTest, ARowSaysWhichLayoutsRanAndWhichDidNot) {
  const std::string& page = pages_["index.html"];
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">layouts</th>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"soft\">1 rank only</td>")) << "of the failing row";
  EXPECT_THAT(page, HasSubstr("not run: dp_replicate, tp, pp, ep"));
  EXPECT_THAT(page, HasSubstr("Not run: dp_replicate, tp, pp, ep."));
}

TEST_F(SiteTest, ARowSaysWhatWasMeasuredAndWhatWasNot) {
  const std::string& page = pages_["index.html"];
  for (const char* part : {"<p class=\"eyebrow\">ok with</p>", "<li>layout dp_shard=2 (",
                           "<p class=\"eyebrow\">not ok with</p>", "<li>layout cp=2 (",
                           "<p class=\"eyebrow\">not tested</p>", "<li>padded input</li>"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST_F(SiteTest, APageOfACellLinksItsControl) {
  const std::vector<CellRecord> cells = SiteCells();
  SiteRuns runs;
  ASSERT_TRUE(runs.Add(folder_ / "run").ok());
  const auto& run = *runs.all()[0];
  EXPECT_THAT(pages_[run.PageOf(cells[1])],
              HasSubstr("<dt>Control</dt><dd><a href=\"../../" + run.PageOf(cells[4]) + "\">"));
  EXPECT_THAT(pages_[run.PageOf(cells[4])], Not(HasSubstr("<dt>Control</dt>")));
}

TEST(CommandTextTest, AFaultIsPlantedByTheSelfTest) {
  Cell cell = SiteCells()[1].cell;
  cell.plant = {"drop-mask"};
  EXPECT_EQ(CommandOf(cell),
            "bkm selftest --all --fault drop-mask --engine verl-torchtitan --attention flex "
            "--model qwen3");
}

}  // namespace
}  // namespace bkm
