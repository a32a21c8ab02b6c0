// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// ci/check-site: pages that another job made are published only if they are nothing but pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckSiteTest : public ::testing::Test {
 protected:
  static fs::path MakeSite() {
    const fs::path site = *CreateTempDirectory(::testing::TempDir(), "site-") / "site";
    for (const char* file : {"index.html", "site.css", "runs/a=1,b=2/index.html",
                             "pylock.verl-0-9-1.toml", "badges/verl.json"})
      EXPECT_TRUE(WriteFile(site / file, "x").ok());
    return site;
  }
  static ProcessResult Check(const fs::path& site) {
    const auto result = RunCommand({.argv = {"python3", "-I", "ci/check-site", site.string()}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(ProcessResult());
  }
};

TEST_F(CheckSiteTest, PagesMayBePublished) {
  const ProcessResult result = Check(MakeSite());
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(CheckSiteTest, WhatIsNoPageIsRefusedInOneSentence) {
  const std::map<std::string, std::function<void(const fs::path&)>> changes = {
      {"link to a file",
       [](const fs::path& s) { fs::create_symlink("/etc/passwd", s / "a.html"); }},
      {"link to a folder",
       [](const fs::path& s) { fs::create_directory_symlink("/etc", s / "b"); }},
      {"link inside", [](const fs::path& s) { fs::create_symlink("index.html", s / "c.html"); }},
      {"hard link", [](const fs::path& s) { fs::create_hard_link(s / "site.css", s / "d.css"); }},
      {"pipe", [](const fs::path& s) { ::mkfifo((s / "e.html").c_str(), 0600); }},
      {"hidden file", [](const fs::path& s) { WriteFile(s / ".htaccess", "").IgnoreError(); }},
      {"hidden folder", [](const fs::path& s) { WriteFile(s / ".git/config", "").IgnoreError(); }},
      {"program", [](const fs::path& s) { WriteFile(s / "f.sh", "").IgnoreError(); }},
      {"no ending", [](const fs::path& s) { WriteFile(s / "CNAME", "").IgnoreError(); }},
      {"line end in a name",
       [](const fs::path& s) { WriteFile(s / "g\n.html", "").IgnoreError(); }},
      {"space in a name", [](const fs::path& s) { WriteFile(s / "h h.html", "").IgnoreError(); }},
      {"dash in front", [](const fs::path& s) { WriteFile(s / "-i.html", "").IgnoreError(); }},
      {"long name",
       [](const fs::path& s) {
         WriteFile(s / (std::string(220, 'j') + ".html"), "").IgnoreError();
       }},
      {"huge file", [](const fs::path& s) { fs::resize_file(s / "site.css", 65 << 20); }},
      {"deep folders",
       [](const fs::path& s) {
         fs::path deep = s;
         for (int i = 0; i < 20; ++i) deep /= "k";
         fs::create_directories(deep);
       }},
      {"no front page", [](const fs::path& s) { fs::remove(s / "index.html"); }},
  };
  for (const auto& [name, change] : changes) {
    const fs::path site = MakeSite();
    change(site);
    const ProcessResult result = Check(site);
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("may not be published")) << name;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << name << result.err;
  }
}

TEST_F(CheckSiteTest, TooMuchInAllIsRefused) {
  const fs::path site = MakeSite();
  for (int i = 0; i < 17; ++i) {
    const fs::path file = site / ("l" + std::to_string(i) + ".json");
    ASSERT_TRUE(WriteFile(file, "").ok());
    fs::resize_file(file, 63 << 20);  // sparse
  }
  EXPECT_EQ(Check(site).exit_code, 1);
}

TEST_F(CheckSiteTest, FolderThatIsALinkOrMissingIsAnError) {
  const fs::path site = MakeSite();
  fs::create_directory_symlink(site, site.parent_path() / "link");
  EXPECT_EQ(Check(site.parent_path() / "link").exit_code, 2);
  EXPECT_EQ(Check(site / "none").exit_code, 2);
}

}  // namespace
}  // namespace bkm
