// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Tests SourceBuilds with the real uv and a registry in a folder. In place of the sandbox is a
// script that only notes what it is asked to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/source/source_builds.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPython[] = "/usr/bin/python3";

// Runs the program after "--" with the variables of --env, and a mark that it is confined.
constexpr char kFakeWorker[] = R"sh(#!/bin/sh
echo "$@" >> "$(dirname "$0")/confined"
environment=CONFINED=1
while [ "$1" != -- ]; do
  if [ "$1" = --env ]; then environment="$environment $2"; shift; fi
  shift
done
shift
exec env -i $environment "$@"
)sh";

// A build backend that leaves a mark when it runs outside of the sandbox, and puts the variables
// that it sees into the module that it builds.
constexpr char kBackend[] = R"py(
import os, zipfile
if "CONFINED" not in os.environ:
    open("@MARK@", "w").close()
def get_requires_for_build_wheel(settings=None):
    return @MORE@
def prepare_metadata_for_build_wheel(folder, settings=None):
    open("@MARK@", "w").close()
def build_wheel(folder, settings=None, metadata=None):
    if "@NAME@" == "unbuildable":
        raise SystemExit("no compiler")
    name = "@WHEEL@-1.0-py3-none-any.whl"
    info = "@WHEEL@-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("@WHEEL@.py", f"seen = {dict(os.environ)!r}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: @WHEEL@\nVersion: 1.0\n@REQUIRES@")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
)py";

struct Sdist {
  std::string name;
  std::string build_requires = "[]";
  std::string more = "[]";         // what its backend asks for when it runs
  std::string requires_dist = {};  // lines of its metadata
  std::string wheel = {};          // the package that it builds, if another
};

class SourceBuildsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* uv = std::getenv("BKM_UV");
    if (!uv || !fs::exists(uv)) GTEST_SKIP() << "BKM_UV names no uv";
    root_ = *CreateTempDirectory(::testing::TempDir(), "builds-");
    mark_ = root_ / "ran-outside";
    ASSERT_TRUE(WriteFile(root_ / "worker", kFakeWorker).ok());
    fs::permissions(root_ / "worker", fs::perms(0755));
    fs::create_directories(root_ / "simple");
    for (const char* name : {"UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"})
      ::unsetenv(name);
    ::setenv("UV_DEFAULT_INDEX", absl::StrCat("file://", (root_ / "simple").string()).c_str(), 1);
    ::setenv("UV_CACHE_DIR", (root_ / "uv-cache").c_str(), 1);
    ::setenv("BKM_CACHE", (root_ / "cache").c_str(), 1);
    ::setenv("UV_INDEX_OURS_PASSWORD", "secret", 1);
    ::setenv("GITHUB_TOKEN", "secret", 1);
    uv_ = std::make_unique<Uv>(uv);
    uv_->BuildIn({.worker = root_ / "worker", .level = "full"});
  }

  // Publishes a source distribution. Returns its hash.
  std::string Publish(const Sdist& sdist) {
    const std::string folder = sdist.name + "-1.0";
    std::string backend = kBackend;
    const auto replace = [&](const std::string& what, const std::string& by) {
      for (size_t at = backend.find(what); at != backend.npos; at = backend.find(what, at))
        backend.replace(at, what.size(), by);
    };
    replace("@MARK@", mark_.string());
    replace("@MORE@", sdist.more);
    replace("@NAME@", sdist.name);
    replace("@WHEEL@", sdist.wheel.empty() ? sdist.name : sdist.wheel);
    replace("@REQUIRES@", sdist.requires_dist);
    const fs::path source = root_ / "sources" / folder;
    EXPECT_TRUE(WriteFile(source / "backend.py", backend).ok());
    EXPECT_TRUE(WriteFile(source / "pyproject.toml",
                          absl::StrCat("[build-system]\nrequires = ", sdist.build_requires,
                                       "\nbuild-backend = 'backend'\nbackend-path = ['.']\n"))
                    .ok());
    // Metadata of a version in which uv does not trust it.
    EXPECT_TRUE(WriteFile(source / "PKG-INFO",
                          "Metadata-Version: 1.0\nName: " + sdist.name + "\nVersion: 1.0\n")
                    .ok());
    const fs::path archive = root_ / "files" / (folder + ".tar.gz");
    fs::create_directories(archive.parent_path());
    EXPECT_TRUE(RunForOutput({.argv = {"tar", "-C", (root_ / "sources").string(), "-czf",
                                       archive.string(), folder}})
                    .ok());
    const std::string sha256 = *Sha256OfFile(archive);
    EXPECT_TRUE(WriteFile(root_ / "simple" / sdist.name / "index.html",
                          absl::StrCat("<a href=\"../../files/", folder, ".tar.gz#sha256=", sha256,
                                       "\">", folder, ".tar.gz</a>"))
                    .ok());
    return sha256;
  }

  SourceBuilds Builds() { return SourceBuilds(*uv_, root_ / "cache", kPython); }
  absl::StatusOr<SourceBuilds::Resolved> Compile(const std::string& requirements) {
    return Builds().Compile(
        {"pip", "compile", "--python", kPython, "--no-header", "--format", "pylock.toml"},
        requirements, {});
  }
  std::string Confined() { return ReadFile(root_ / "confined").value_or(""); }

  fs::path root_, mark_;
  std::unique_ptr<Uv> uv_;
};

TEST_F(SourceBuildsTest, SourceDistributionIsBuiltInTheSandboxAndPinnedByItsOwnHash) {
  const std::string sha256 = Publish({.name = "evil"});
  const absl::StatusOr<SourceBuilds::Resolved> resolved = Compile("evil\n");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  ASSERT_TRUE(resolved->result.ok()) << resolved->result.err;
  ASSERT_EQ(resolved->packages.size(), 1u);
  EXPECT_EQ(resolved->packages[0].name, "evil");
  EXPECT_THAT(resolved->packages[0].sha256, ElementsAre(sha256));
  EXPECT_FALSE(resolved->packages[0].files[0].is_wheel);
  EXPECT_FALSE(fs::exists(mark_)) << "the package's code ran outside of the sandbox";
  EXPECT_THAT(Confined(), AllOf(HasSubstr("confine --sandbox full --read "), HasSubstr(" wheel ")));
}

TEST_F(SourceBuildsTest, RequirementsOfABuiltPackageCount) {
  Publish({.name = "inner"});
  Publish({.name = "outer", .requires_dist = "Requires-Dist: inner\\n"});
  const absl::StatusOr<SourceBuilds::Resolved> resolved = Compile("outer\n");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  ASSERT_TRUE(resolved->result.ok()) << resolved->result.err;
  std::vector<std::string> names;
  for (const PinnedPackage& package : resolved->packages) names.push_back(package.name);
  EXPECT_THAT(names, ElementsAre("inner", "outer"));
  EXPECT_FALSE(fs::exists(mark_));
}

TEST_F(SourceBuildsTest, InstallsAPinnedSourceDistributionWithoutCredentialsInItsBuild) {
  const std::string pin = "evil==1.0 --hash=sha256:" + Publish({.name = "evil"});
  const fs::path target = root_ / "target";
  const absl::StatusOr<ProcessResult> installed =
      Builds().Install({"pip", "install", "--python", kPython, "--no-deps", "--require-hashes",
                        "--target", target.string()},
                       {pin}, {});
  ASSERT_TRUE(installed.ok()) << installed.status();
  ASSERT_TRUE(installed->ok()) << installed->err;
  const std::string module = *ReadFile(target / "evil.py");
  EXPECT_THAT(module, AllOf(HasSubstr("CONFINED"), Not(HasSubstr("secret"))));
  EXPECT_FALSE(fs::exists(mark_));
}

TEST_F(SourceBuildsTest, NewerReleaseWithoutAWheelIsPreferredToAnOlderOneWithOne) {
  // Of "user", version 2 needs "evil", which has no wheel, and version 1 needs nothing.
  const std::string sha256 = Publish({.name = "evil"});
  std::string links;
  for (const char* version : {"1", "2"}) {
    const std::string name = absl::StrCat("user-", version, "-py3-none-any.whl");
    const std::string info = absl::StrCat("user-", version, ".dist-info");
    const std::string requires_dist = version[0] == '2' ? "Requires-Dist: evil\n" : "";
    const fs::path folder = root_ / "unpacked" / version / info;
    ASSERT_TRUE(WriteFile(folder / "METADATA",
                          absl::StrCat("Metadata-Version: 2.1\nName: user\nVersion: ", version,
                                       "\n", requires_dist))
                    .ok());
    ASSERT_TRUE(WriteFile(folder / "WHEEL",
                          "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                    .ok());
    ASSERT_TRUE(WriteFile(folder / "RECORD", "").ok());
    fs::create_directories(root_ / "files");
    ASSERT_TRUE(RunForOutput({.argv = {kPython, "-m", "zipfile", "-c",
                                       (root_ / "files" / name).string(), info},
                              .directory = root_ / "unpacked" / version})
                    .ok());
    absl::StrAppend(&links, "<a href=\"../../files/", name,
                    "#sha256=", *Sha256OfFile(root_ / "files" / name), "\">", name, "</a>\n");
  }
  ASSERT_TRUE(WriteFile(root_ / "simple/user/index.html", links).ok());
  const absl::StatusOr<SourceBuilds::Resolved> resolved = Compile("user\n");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  ASSERT_EQ(resolved->packages.size(), 2u) << resolved->result.out;
  EXPECT_THAT(resolved->packages[0].sha256, ElementsAre(sha256));
  EXPECT_EQ(resolved->packages[1].version, "2");
}

TEST_F(SourceBuildsTest, WheelIsBuiltOnceForAll) {
  Publish({.name = "evil"});
  ASSERT_TRUE(Compile("evil\n").ok());
  const std::string before = Confined();
  ASSERT_TRUE(Compile("evil\n").ok());
  EXPECT_EQ(Confined(), before);
}

TEST_F(SourceBuildsTest, WithoutASandboxNothingIsBuilt) {
  Publish({.name = "evil"});
  uv_->BuildIn({});
  EXPECT_EQ(Compile("evil\n").status(),
            absl::AbortedError("cannot build evil 1.0, which has only a source distribution: this "
                               "command builds no packages"));
  EXPECT_FALSE(fs::exists(mark_));
}

TEST_F(SourceBuildsTest, FailedBuildSaysWhyAndIsNotTriedAgain) {
  Publish({.name = "unbuildable"});
  const SourceBuilds builds = Builds();
  const auto compile = [&] {
    return builds
        .Compile({"pip", "compile", "--python", kPython, "--no-header", "--format", "pylock.toml"},
                 "unbuildable\n", {})
        .status();
  };
  const absl::Status status = compile();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot build unbuildable 1.0, which has only a source distribution: its "
                        "build backend failed: no compiler"));
  const std::string before = Confined();
  EXPECT_EQ(compile(), status);
  EXPECT_EQ(Confined(), before);
}

TEST_F(SourceBuildsTest, BuildMayOnlyAskForPlainPackages) {
  Publish({.name = "asks", .build_requires = "['evil @ file:///tmp/evil']"});
  EXPECT_THAT(std::string(Compile("asks\n").status().message()),
              HasSubstr("build-system in pyproject.toml: the requirement 'evil @ file:///tmp/evil' "
                        "contains a URL"));
  Publish({.name = "asks-late", .more = "['-r /etc/passwd']"});
  EXPECT_THAT(std::string(Compile("asks-late\n").status().message()), HasSubstr("an option"));
  Publish({.name = "asks-wrong", .more = "{1: 2}"});
  EXPECT_TRUE(absl::IsAborted(Compile("asks-wrong\n").status()));
  EXPECT_FALSE(fs::exists(mark_));
}

TEST_F(SourceBuildsTest, BuildGivesNoOtherPackage) {
  Publish({.name = "evil", .wheel = "torch"});
  const absl::Status status = Compile("evil\n").status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a wheel of another package"));
}

TEST_F(SourceBuildsTest, ChangedSourceDistributionIsRefused) {
  Publish({.name = "evil"});
  ASSERT_TRUE(WriteFile(root_ / "files/evil-1.0.tar.gz", "something else").ok());
  const absl::Status status = Compile("evil\n").status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not have the registry's hash"));
}

TEST_F(SourceBuildsTest, LookUpFindsSourceDistributionsWithoutBuilding) {
  const std::string sha256 = Publish({.name = "evil"});
  const ProcessResult result = *uv_->LookUp({"pip", "compile", "--python", kPython, "--no-deps",
                                             "--no-header", "--format", "pylock.toml", "-"},
                                            "evil==1.0\n");
  EXPECT_THAT(result.out, HasSubstr(sha256));
  EXPECT_EQ(Confined(), "");
  EXPECT_FALSE(fs::exists(mark_));
}

}  // namespace
}  // namespace bkm
