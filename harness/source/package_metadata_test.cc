// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/package_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PackageReaderTest : public ::testing::Test {
 protected:
  PackageReaderTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "package-")) {}
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFile(folder_ / name, content).ok());
  }
  std::vector<std::string> Declared() {
    const absl::StatusOr<PackageMetadata> metadata = reader_.ReadDeclared(folder_);
    EXPECT_TRUE(metadata.ok()) << metadata.status();
    return metadata.ok() ? metadata->requirements : std::vector<std::string>{"failed"};
  }
  std::string Error() { return std::string(reader_.ReadDeclared(folder_).status().message()); }

  fs::path folder_;
  PackageReader reader_{"/usr/bin/python3"};
};

TEST_F(PackageReaderTest, ProjectTableDeclares) {
  Write("pyproject.toml", "[project]\nname = 'p'\ndependencies = ['a>=1', 'b']\n");
  Write("setup.py", "from setuptools import setup\nsetup(install_requires=['other'])\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b"));
  EXPECT_EQ(reader_.ReadDeclared(folder_)->name, "p");
}

TEST_F(PackageReaderTest, DynamicFilesDeclare) {
  Write("pyproject.toml",
        "[project]\nname='p'\ndynamic=['dependencies']\n"
        "[tool.setuptools.dynamic]\ndependencies = {file = ['requirements.txt']}\n");
  Write("requirements.txt", "# comment\na>=1  # why\n\nb[x] ; python_version > '3'\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b[x] ; python_version > '3'"));
}

TEST_F(PackageReaderTest, SetupScriptIsReadAndNeverRun) {
  Write("pyproject.toml", "[project]\nname='p'\ndynamic=['version', 'dependencies']\n");
  Write("setup.py",
        "import os, setuptools\n"
        "os.mkdir('" +
            (folder_ / "ran").string() +
            "')\n"
            "base = ['a', 'b<2']\n"
            "more: list = ['c']\n"
            "setuptools.setup(name='p', version=open('v').read(), install_requires=base + more)\n");
  EXPECT_THAT(Declared(), ElementsAre("a", "b<2", "c"));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(PackageReaderTest, ListThatOnlyRunningCodeWouldGiveIsAnError) {
  for (const char* change : {"reqs += ['b']", "reqs.append('b')", "if X:\n  reqs = []"}) {
    Write("setup.py", std::string("from setuptools import setup\nreqs = ['a']\n") + change +
                          "\nsetup(install_requires=reqs)\n");
    EXPECT_THAT(Error(),
                HasSubstr("cannot read the requirements of " + folder_.string() + ": line "))
        << change;
  }
}

TEST_F(PackageReaderTest, SetupCfgDeclares) {
  Write("setup.py", "import setuptools\nsetuptools.setup()\n");
  Write("setup.cfg", "[metadata]\nname = p\n[options]\ninstall_requires =\n  a>=1\n  b\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b"));
}

TEST_F(PackageReaderTest, FolderWithoutMetadataDeclaresNothing) {
  EXPECT_THAT(Declared(), IsEmpty());
}

TEST_F(PackageReaderTest, BrokenMetadataIsAnError) {
  Write("pyproject.toml", "[project\n");
  EXPECT_THAT(Error(), HasSubstr("cannot read the requirements of"));
}

TEST_F(PackageReaderTest, InstalledMetadataLeavesExtrasOut) {
  Write("METADATA",
        "Metadata-Version: 2.1\nName: p\nRequires-Dist: a>=1\n"
        "Requires-Dist: t ; extra == 'test'\nRequires-Dist: b ; python_version > '3'\n\nbody\n");
  EXPECT_THAT(reader_.ReadInstalled(folder_ / "METADATA")->requirements,
              ElementsAre("a>=1", "b ; python_version > '3'"));
}

TEST_F(PackageReaderTest, PylockNamesVersionsHashesAndTimes) {
  const char* text =
      "lock-version = '1.0'\n"
      "[[packages]]\nname = 'a'\nversion = '1.0'\n"
      "sdist = {url='u', upload-time=2026-01-03T00:00:00Z, hashes={sha256='ff'}}\n"
      "wheels = [{url='u', upload-time=2026-01-02T00:00:00Z, hashes={sha256='bb'}},"
      "{url='v', upload-time=2026-01-04T00:00:00Z, hashes={sha256='aa'}}]\n"
      "[[packages]]\nname = 'b'\nversion = '2'\n"
      "sdist = {path='/x/b.tar.gz', hashes={sha256='cc'}}\n";
  EXPECT_THAT(
      *reader_.ReadPylock(text),
      ElementsAre(
          PinnedPackage{
              "a", "1.0", {"aa", "bb"}, "2026-01-02", {{"u", "bb", true}, {"v", "aa", true}}},
          PinnedPackage{"b", "2", {"cc"}, "", {{"", "cc", false}}}));
}

}  // namespace
}  // namespace bkm
