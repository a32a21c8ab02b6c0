// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

// A virtual environment of the system's Python, filled by hand.
class InterpreterTest : public ::testing::Test {
 protected:
  InterpreterTest() : root_(*CreateTempDirectory(::testing::TempDir(), "interpreter-")) {
    fs::create_directories(environment_ / "bin");
    fs::create_symlink("/usr/bin/python3", python());
    Write(environment_ / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
    site_ = environment_ / "lib" /
            absl::StrCat("python", MinorVersion(ReadInterpreter("/usr/bin/python3")->python)) /
            "site-packages";
  }

  fs::path python() const { return environment_ / "bin/python"; }
  static void Write(const fs::path& file, const std::string& text) {
    ASSERT_TRUE(WriteFile(file, text).ok()) << file;
  }
  void AddDistribution(const std::string& name, const std::string& version,
                       const std::string& direct_url = "") {
    const fs::path facts = site_ / absl::StrCat(name, "-", version, ".dist-info");
    Write(facts / "METADATA",
          absl::StrCat("Metadata-Version: 2.1\nName: ", name, "\nVersion: ", version, "\n"));
    if (!direct_url.empty()) Write(facts / "direct_url.json", direct_url);
  }

  const fs::path root_;
  const fs::path environment_ = root_ / "environment";
  fs::path site_;
};

TEST(MinorVersionTest, LeavesThePatchOut) {
  EXPECT_EQ(MinorVersion("3.11.2"), "3.11");
  EXPECT_EQ(MinorVersion("3.11"), "3.11");
}

TEST_F(InterpreterTest, ReadsVersionsWithoutTheBasesPackages) {
  AddDistribution("Some_Package", "1.5");
  const InterpreterFacts facts = *ReadInterpreter(python());
  EXPECT_THAT(facts.packages, testing::ElementsAre(std::pair<const std::string, std::string>(
                                  "some-package", "1.5")));
}

TEST_F(InterpreterTest, SeesTheBasesPackagesWhereTheEnvironmentDoes) {
  Write(environment_ / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n");
  AddDistribution("mine", "1");
  std::map<std::string, std::string> expected = ReadInterpreter("/usr/bin/python3")->packages;
  expected["mine"] = "1";
  EXPECT_EQ(ReadInterpreter(python())->packages, expected);
}

// Whatever Python runs at its start when it is started in the usual way.
TEST_F(InterpreterTest, RunsNoCodeOfTheEnvironment) {
  const fs::path traces = root_ / "traces";
  fs::create_directories(traces);
  const auto trace = [&](const std::string& name) {
    return absl::StrCat("open('", (traces / name).string(), "', 'w')");
  };
  AddDistribution("verl", "0.9.1");
  Write(site_ / "verl/__init__.py", trace("package"));
  Write(site_ / "evil.pth", absl::StrCat("import os; ", trace("pth"), "\n"));
  Write(site_ / "tab.pth", absl::StrCat("import\tos; ", trace("tab"), "\n"));
  Write(site_ / "sitecustomize.py", trace("sitecustomize"));
  Write(site_ / "usercustomize.py", trace("usercustomize"));
  Write(site_ / "json/__init__.py", trace("standard-library-name"));
  Write(site_ / "packaging/__init__.py", trace("packaging"));
  // The fixture is hostile: when the environment starts in the usual way, it runs code.
  ASSERT_EQ(std::system(absl::StrCat(python().string(), " -c pass").c_str()), 0);
  ASSERT_TRUE(fs::exists(traces / "pth"));
  fs::remove_all(traces);
  fs::create_directories(traces);

  EXPECT_THAT(ReadInterpreter(python())->packages, Contains(Key("verl")));
  EXPECT_THAT(*ReadInstalled(python(), {"verl", "packaging"}), SizeIs(2));
  EXPECT_THAT(std::vector<fs::path>(fs::directory_iterator(traces), {}), IsEmpty());
}

TEST_F(InterpreterTest, FollowsPathLines) {
  const fs::path tree = root_ / "tree";
  Write(tree / "verl/__init__.py", "");
  Write(site_ / "editable.pth",
        absl::StrCat("# a comment\n\n", tree.string(), "\n/no/such/folder\n"));
  const std::vector<InstalledPackage> found = *ReadInstalled(python(), {"verl", "torch"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].package, "verl");
  EXPECT_EQ(found[0].version, "");
  EXPECT_EQ(found[0].folder, tree);
}

TEST_F(InterpreterTest, FindsEditableInstallations) {
  const fs::path mapped = root_ / "mapped", sources = root_ / "sources";
  Write(mapped / "verl/__init__.py", "");
  Write(sources / "src/torchtitan/__init__.py", "");
  AddDistribution("verl", "0.9.1");
  Write(site_ / "__editable___verl_0_9_1_finder.py",
        absl::StrCat("import sys\nMAPPING: dict[str, str] = {'verl': '", (mapped / "verl").string(),
                     "'}\n"));
  AddDistribution("torchtitan", "0.3.0",
                  absl::StrCat("{\"url\": \"file://", sources.string(),
                               "\", \"dir_info\": {\"editable\": true}}"));
  const std::vector<InstalledPackage> found = *ReadInstalled(python(), {"verl", "torchtitan"});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].folder, mapped);
  EXPECT_EQ(found[0].version, "0.9.1");
  EXPECT_EQ(found[1].folder, sources / "src");
}

TEST_F(InterpreterTest, ReadsTheCommitOfAnInstallationFromGit) {
  const std::string commit(40, 'a');
  Write(site_ / "verl/__init__.py", "");
  AddDistribution("verl", "0.9.1",
                  absl::StrCat("{\"url\": \"https://example.org/verl\", \"vcs_info\": {\"vcs\": "
                               "\"git\", \"commit_id\": \"",
                               commit, "\"}}"));
  EXPECT_EQ(ReadInstalled(python(), {"verl"})->at(0).commit, commit);
}

TEST_F(InterpreterTest, SaysWhatItCannotRead) {
  EXPECT_THAT(ReadInterpreter(root_ / "python").status().message(),
              testing::HasSubstr("no such program"));
  Write(site_ / "verl/__init__.py", "");
  AddDistribution("verl", "0.9.1", "not JSON");
  EXPECT_THAT(ReadInstalled(python(), {"verl"}).status().message(),
              testing::HasSubstr("cannot read the environment"));
}

TEST_F(InterpreterTest, IgnoresFindersThatAreNotWhatSetuptoolsWrites) {
  Write(site_ / "__editable___a_finder.py", "MAPPING = [1, 2]\n");
  Write(site_ / "__editable___b_finder.py", "MAPPING = {[]: 1}\n");
  Write(site_ / "__editable___c_finder.py", "not Python");
  Write(site_ / "__editable___d_finder.py", "MAPPING = {'verl': 3}\n");
  EXPECT_THAT(*ReadInstalled(python(), {"verl"}), IsEmpty());
}

}  // namespace
}  // namespace bkm
