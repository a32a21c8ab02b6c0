// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Locks with the real registry and the real uv. Needs the network: skipped without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/publish/publication.h"
#include "harness/publish/row_lock.h"
#include "harness/publish/testing_table.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPython[] = "/usr/bin/python3";
// numpy 2.4.6 for CPython 3.11 on x86-64 Linux.
constexpr char kNumpy[] = "89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93";

class RowLockTest : public ::testing::Test {
 protected:
  RowLockTest()
      : uv_(*Uv::Find()),
        registry_(uv_, kPython),
        folder_(*CreateTempDirectory(::testing::TempDir(), "lock")) {
    lock_.runtime = "cpu";
    lock_.python = "3.11";
    lock_.packages = {{"numpy", "2.4.6", {kNumpy}}};
    row_ = AGoodRow();
    row_.engine_version =
        AVersion("git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c", "v0.8.0", "2026-05-20");
  }

  absl::StatusOr<std::string> Text() { return PylockText(row_, lock_, catalog_, registry_); }

  // What uv would do with the lock in an empty environment.
  std::string DryRun(const std::string& text) {
    const fs::path file = folder_ / PylockName(row_);
    EXPECT_TRUE(WriteFile(file, text).ok());
    EXPECT_TRUE(
        uv_.Run({"venv", "--quiet", "--clear", "--python", kPython, (folder_ / "venv").string()})
            .ok());
    return AsUser({"pip", "sync", "--dry-run", "--preview-features", "pylock", "--python",
                   (folder_ / "venv/bin/python").string(), file.string()})
        .err;
  }

  // Runs uv as a user of the lock does, who lets it build packages.
  static ProcessResult AsUser(std::vector<std::string> arguments) {
    const char* uv = std::getenv("BKM_UV");
    arguments.insert(arguments.begin(), uv ? uv : "uv");
    return *RunCommand({.argv = std::move(arguments), .directory = "/"});
  }

  Uv uv_;
  SourceCatalog catalog_;
  Registry registry_;
  const fs::path folder_;
  RuntimeLock lock_;
  PublishedRow row_;
};

TEST_F(RowLockTest, HoldsThePairByCommitAndReleaseAndUvTakesIt) {
  const absl::StatusOr<std::string> text = Text();
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("vcs = { type = \"git\", url = "
                               "\"https://github.com/verl-project/verl\", commit-id = "
                               "\"7aed6b230776f963fa09509c10d9c3a767d1102c\" }"));
  EXPECT_THAT(*text, HasSubstr(absl::StrCat("hashes = { sha256 = \"", kNumpy, "\" }")));
  EXPECT_THAT(*text, HasSubstr("requires-python = \"==3.11.*\""));
  EXPECT_THAT(*text, HasSubstr("environments = [\"sys_platform == 'linux' and"));
  EXPECT_THAT(*text, Not(HasSubstr("file:")));
  const std::string would = DryRun(*text);
  EXPECT_THAT(would, HasSubstr(" + numpy==2.4.6\n"));
  EXPECT_THAT(would, HasSubstr(" + torchtitan==0.3.0\n"));
  EXPECT_THAT(would, HasSubstr(" + verl @ git+https://github.com/verl-project/"
                               "verl@7aed6b230776f963fa09509c10d9c3a767d1102c\n"));
}

// The repository's own address is not reached: git is told to take it from here.
TEST_F(RowLockTest, InstallsACommitAndAReleaseIntoAnEmptyEnvironment) {
  GitFixture repository(folder_ / "tiny");
  repository.Write("pyproject.toml",
                   "[build-system]\nrequires = [\"setuptools\"]\n"
                   "build-backend = \"setuptools.build_meta\"\n"
                   "[project]\nname = \"tiny\"\nversion = \"1.0\"\n");
  repository.Write("tiny.py", "import six\n");
  const std::string commit = repository.Commit("one", "2026-06-01");
  repository.Write("tiny.py", "raise ValueError('a later commit')\n");
  repository.Commit("two", "2026-06-02");
  ASSERT_TRUE(
      catalog_
          .Add(Json{{"tiny", {{"git", "https://git.invalid/tiny"}, {"package", "tiny"}}}}, "", "")
          .ok());
  row_.engine_version = AVersion("git:tiny@" + commit, "main", "2026-06-01");
  row_.library_to = AVersion("pypi:six==1.17.0", "1.17.0", "2024-12-04");
  lock_.packages.clear();
  const absl::StatusOr<std::string> text = Text();
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status();
  ASSERT_TRUE(text.ok()) << text.status();
  DryRun(*text);
  ::setenv("GIT_CONFIG_COUNT", "1", 1);
  ::setenv("GIT_CONFIG_KEY_0",
           absl::StrCat("url.file://", repository.folder().string(), ".insteadOf").c_str(), 1);
  ::setenv("GIT_CONFIG_VALUE_0", "https://git.invalid/tiny", 1);
  const fs::path python = folder_ / "venv/bin/python";
  const ProcessResult sync = AsUser({"pip", "sync", "--preview-features", "pylock", "--python",
                                     python.string(), (folder_ / PylockName(row_)).string()});
  ::unsetenv("GIT_CONFIG_COUNT");
  ASSERT_TRUE(sync.ok()) << sync.err;
  EXPECT_EQ(*RunForOutput({.argv = {python.string(), "-I", "-c",
                                    "import tiny; print(tiny.six.__version__)"}}),
            "1.17.0\n");
}

TEST_F(RowLockTest, UvRefusesItOnAnotherKindOfMachine) {
  const absl::StatusOr<std::string> text = Text();
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status();
  std::string other = *text;
  other.replace(other.find("'linux'"), 7, "'win32'");
  EXPECT_THAT(DryRun(other), HasSubstr("not supported by the lockfile"));
}

TEST_F(RowLockTest, OtherFilesThanTheMeasuredOnesAreNoLock) {
  lock_.packages = {{"numpy", "2.4.6", {std::string(64, '0')}}};
  const absl::Status status = Text().status();
  if (absl::IsUnavailable(status)) GTEST_SKIP() << status;
  EXPECT_EQ(status.message(), "numpy==2.4.6: the registry no longer has any of the measured files");
}

TEST_F(RowLockTest, AVanishedPinIsNamedAmongManyOthers) {
  lock_.packages = {
      {"numpy", "2.4.6", {kNumpy}}, {"packaging", "9999.0", {"a"}}, {"six", "1.17.0", {"b"}}};
  const absl::Status status = Text().status();
  if (absl::IsUnavailable(status)) GTEST_SKIP() << status;
  EXPECT_EQ(status.message(), "packaging==9999.0 is no longer in the registry");
}

TEST_F(RowLockTest, AnEnvironmentAsFoundIsNoLock) {
  lock_.packages = {{"numpy", "2.4.6", {}}};
  EXPECT_EQ(Text().status().message(),
            "runtime cpu is an existing environment: numpy 2.4.6 has no hash");
}

TEST_F(RowLockTest, ARepositoryThatNobodyNamesIsNoLock) {
  row_.engine_version.subject = "git:myfork@" + std::string(40, 'a');
  EXPECT_THAT(std::string(Text().status().message()),
              HasSubstr("the repository of 'myfork' is unknown"));
}

TEST_F(RowLockTest, ReleasesStandInTheOrderOfTheRegistry) {
  const absl::StatusOr<std::string> before = registry_.ReleaseBefore("torchtitan", "0.3.0");
  if (absl::IsUnavailable(before.status())) GTEST_SKIP() << before.status();
  EXPECT_EQ(*before, "0.2.2");
}

TEST_F(RowLockTest, VerifyNamesWhatIsGoneYankedOrTooOld) {
  row_.engine_version = AVersion("pypi:verl==0.9.1", "0.9.1", "2026-06-01");
  PublishedTable table{.date = "2026-06-11", .rows = {row_}};
  ASSERT_TRUE(WriteFile(folder_ / row_.pylock,
                        absl::StrCat("lock-version = \"1.0\"\ncreated-by = \"bkm\"\n"
                                     "[[packages]]\nname = \"attrs\"\nversion = \"21.1.0\"\n"
                                     "wheels = [{ url = \"https://x/a.whl\", hashes = { sha256 = "
                                     "\"8ee1e5f5a1afc5b19bdfae4fdf0c35ed324074bdce3500c939842c8f81"
                                     "8645d9\" } }]\n"
                                     "[[packages]]\nname = \"numpy\"\nversion = \"2.4.6\"\n"
                                     "wheels = [{ url = \"https://x/n.whl\", hashes = { sha256 = "
                                     "\"00\" } }]\n"
                                     "[[packages]]\nname = \"packaging\"\nversion = \"9999.0\"\n"
                                     "wheels = [{ url = \"https://x/p.whl\", hashes = { sha256 = "
                                     "\"00\" } }]\n"))
                  .ok());
  GitSources sources(catalog_, "", folder_ / "clones");
  std::vector<std::string> notes;
  const absl::StatusOr<Verification> found =
      VerifyTable(table, folder_, "2027-01-01", PackageReader(kPython), registry_, sources, notes);
  if (absl::IsUnavailable(found.status())) GTEST_SKIP() << found.status();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->locks, 1);
  EXPECT_EQ(found->pins, 3);
  ASSERT_EQ(found->stale.size(), 1u);
  EXPECT_TRUE(found->stale[0].expired);
  EXPECT_THAT(found->stale[0].gone,
              ElementsAre("numpy==2.4.6 (with these files)", "packaging==9999.0"));
  EXPECT_THAT(found->stale[0].yanked,
              ElementsAre("attrs==21.1.0 (Installable but not importable on Python 3.4.)"));
}

}  // namespace
}  // namespace bkm
