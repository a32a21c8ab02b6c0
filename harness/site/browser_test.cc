// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Checks the site in headless Chromium and with an HTML validator. tools/web/install puts both, and
// axe, into the user's cache folder; if it cannot, these tests are skipped.
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/site/cell_page.h"
#include "harness/site/testing_site.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

fs::path Runfile(const std::string& path) {
  return fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE") / path;
}

class BrowserTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const absl::StatusOr<ProcessResult> installed =
        RunCommand({.argv = {Runfile("tools/web/install").string()}});
    if (!installed.ok() || installed->exit_code != 0) {
      why_not_ = installed.ok() ? installed->err : std::string(installed.status().message());
      return;
    }
    tools_ = std::string(absl::StripAsciiWhitespace(installed->out));
    folder_ = *CreateTempDirectory(fs::path(::testing::TempDir()), "browser-");
    WriteSiteWithPictures();
  }
  static void TearDownTestSuite() {
    if (!folder_.empty()) RemoveTree(folder_).IgnoreError();
  }
  void SetUp() override {
    if (tools_.empty()) GTEST_SKIP() << why_not_;
  }

  // The faults that the script found, one per line.
  static std::string Faults(const std::string& script, std::vector<std::string> arguments) {
    std::vector<std::string> command = {"node", Runfile("harness/site/web_checks/" + script),
                                        tools_, (folder_ / "site").string()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const absl::StatusOr<ProcessResult> result = RunCommand({.argv = command});
    if (!result.ok()) return std::string(result.status().message());
    return result->exit_code == 0 ? "" : result->out + result->err;
  }
  static std::string Browser(const std::string& check) { return Faults("browser.mjs", {check}); }

 private:
  static void WriteSiteWithPictures() {
    const SiteContent content = ASite(folder_);
    HARNESS_CHECK(WriteSite(content, folder_ / "site").ok());
    const SiteRun& run = *content.runs.all()[0];
    Page page = CellPage(content.runs, run, run.record().cells[3], ADrawnEvidence());
    page.path = run.folder() + "a-drawn.html";
    HARNESS_CHECK(WriteFile(folder_ / "site" / page.path, WholePage(page, SiteFrame())).ok());
  }

  inline static std::string tools_;
  inline static std::string why_not_;
  inline static fs::path folder_;
};

TEST_F(BrowserTest, EveryPageIsValidHtml) { EXPECT_EQ(Faults("validate.mjs", {}), ""); }
TEST_F(BrowserTest, EveryPageLoadsAloneAndWithoutErrors) { EXPECT_EQ(Browser("load"), ""); }
TEST_F(BrowserTest, TheKeyboardReachesTheEvidence) { EXPECT_EQ(Browser("navigate"), ""); }
TEST_F(BrowserTest, FiltersNarrowTheTable) { EXPECT_EQ(Browser("filter"), ""); }
TEST_F(BrowserTest, ColoursAreChosenAndRemembered) { EXPECT_EQ(Browser("theme"), ""); }
TEST_F(BrowserTest, EverythingCanBeReadWithoutAScript) { EXPECT_EQ(Browser("noscript"), ""); }
TEST_F(BrowserTest, NothingIsWiderThanANarrowScreen) { EXPECT_EQ(Browser("narrow"), ""); }
TEST_F(BrowserTest, IsAccessibleInLightColours) { EXPECT_EQ(Browser("axe-light"), ""); }
TEST_F(BrowserTest, IsAccessibleInDarkColours) { EXPECT_EQ(Browser("axe-dark"), ""); }
TEST_F(BrowserTest, IsAccessibleOnANarrowScreen) { EXPECT_EQ(Browser("axe-narrow"), ""); }

}  // namespace
}  // namespace bkm
