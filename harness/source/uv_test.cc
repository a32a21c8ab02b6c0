// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/uv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ProcessResult Failed(const char* err, int code = 1) { return {.err = err, .exit_code = code}; }

TEST(UvTest, ComplaintOfAConflictIsOneLineWithoutProgress) {
  EXPECT_EQ(UvComplaint(Failed("Using CPython 3.11.2 interpreter at: /x\n"
                               "  × No solution found when resolving dependencies:\n"
                               "  ╰─▶ Because a==1 depends on\n      b<2 and you require b>=2,\n"
                               "      no version fits.\n")),
            "Because a==1 depends on b<2 and you require b>=2, no version fits.");
}

TEST(UvTest, FailedTransferNamesTheUrlAndTheLastCause) {
  const ProcessResult result = Failed(
      "error: Request failed after 3 retries in 4.8s\n"
      "  cause: Failed to fetch: https://example.org/simple/torch/\n"
      "  cause: error sending request for url (https://example.org/simple/torch/)\n"
      "  cause: dns error\n  cause: Name or service not known\n",
      2);
  const absl::Status status = ErrorOf(result, "cannot resolve");
  EXPECT_EQ(status, absl::UnavailableError(
                        "cannot resolve: Request failed after 3 retries in 4.8s: Failed to fetch: "
                        "https://example.org/simple/torch/: Name or service not known (check the "
                        "network and the registry: UV_DEFAULT_INDEX, HTTPS_PROXY)"));
}

TEST(UvTest, ASuccessIsNoError) { EXPECT_TRUE(ErrorOf(Failed("", 0), "installing").ok()); }

TEST(UvTest, EveryFormOfAFailedTransferIsUnavailable) {
  for (const char* text :
       {"error: Failed to fetch: http://x/\n  cause: error sending request for url (http://x/)\n"
        "  cause: operation timed out\n",
        "error: Failed to prepare distributions\n  Caused by: Failed to fetch wheel: torch==2.0\n"
        "  Caused by: tcp connect error\n",
        "  × Failed to download `torch==2.0`\n  ├─▶ Request failed after 3 retries\n",
        "  × Failed to read `a`\n  ╰─▶ error sending request for url (https://x/)\n"}) {
    EXPECT_EQ(ErrorOf(Failed(text, 2), "x").code(), absl::StatusCode::kUnavailable) << text;
  }
}

TEST(UvTest, PackageOrBuildThatMentionsTheNetworkIsNoFailedTransfer) {
  EXPECT_EQ(ErrorOf(Failed("  × No solution found when resolving dependencies:\n"
                           "  ╰─▶ Because networkx==3.0 depends on\n      scipy<1 and you require "
                           "scipy, no version fits.\n"),
                    "x")
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorOf(Failed("error: Failed to build `a==1`\n  cause: The build backend ended\n\n"
                           "[stderr]\nRequest failed: the network was disabled by --network\n"),
                    "x")
                .code(),
            absl::StatusCode::kInternal);
}

TEST(UvTest, PackageThatIsNotCachedOfflineIsNoConflict) {
  const char* text =
      "error: No solution found when resolving dependencies\n  cause: Because a was not found in "
      "the cache\n\nhint: Packages were unavailable because the network was disabled.";
  EXPECT_FALSE(IsNoSolution(Failed(text)));
  EXPECT_EQ(ErrorOf(Failed(text), "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsNoSolution(Failed("error: No solution found when resolving dependencies\n")));
}

TEST(UvTest, TemporaryFilesOfUvAreInTheCache) {
  const std::filesystem::path cache = *CreateTempDirectory(::testing::TempDir(), "cache-");
  ::setenv("BKM_CACHE", cache.c_str(), 1);
  ::setenv("BKM_UV", "/usr/bin/mktemp", 1);
  const absl::StatusOr<ProcessResult> result = Uv::Find()->Run({"--tmpdir"});
  ASSERT_TRUE(result.ok() && result->ok()) << result.status();
  EXPECT_EQ(std::filesystem::path(result->out).parent_path(), cache / "tmp" / "uv");
}

TEST(UvTest, TorchBackendYieldsToTheEnvironment) {
  for (const char* variable : {"UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
                               "UV_DEFAULT_INDEX", "UV_TORCH_BACKEND"}) {
    ::unsetenv(variable);
  }
  EXPECT_THAT(TorchBackendArguments("cpu"), ElementsAre("--torch-backend", "cpu"));
  EXPECT_THAT(TorchBackendArguments(""), IsEmpty());
  ::setenv("UV_FIND_LINKS", "/wheels", 1);
  EXPECT_THAT(TorchBackendArguments("cpu"), IsEmpty());
}

TEST(UvTest, CutoffHidesNewerFilesOfAllButTheExemptPackages) {
  EXPECT_THAT(CutoffArguments("2026-04-01T00:00:00Z", {"torch"}),
              ElementsAre("--exclude-newer", "2026-04-01T00:00:00Z", "--exclude-newer-package",
                          "torch=false"));
  EXPECT_THAT(CutoffArguments("", {"torch"}), IsEmpty());
}

TEST(UvTest, SettingsThatWouldChangeAResolutionAreHidden) {
  const std::filesystem::path program = *CreateTempDirectory(::testing::TempDir(), "uv-") / "uv";
  ASSERT_TRUE(
      WriteFile(program, "#!/bin/sh\necho ${UV_PYTHON-none} ${VIRTUAL_ENV-none} $PWD\n").ok());
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  ::setenv("UV_PYTHON", "3.10", 1);
  ::setenv("VIRTUAL_ENV", "/elsewhere", 1);
  EXPECT_EQ(Uv(program).Run({"pip"})->out, "none none /\n");
}

// A fake uv that prints its arguments and environment.
Uv PrintingUv() {
  const std::filesystem::path program = *CreateTempDirectory(::testing::TempDir(), "uv-") / "uv";
  EXPECT_TRUE(
      WriteFile(program, "#!/bin/sh\necho \"$@\"\n/usr/bin/env\ncat uv.toml 2>/dev/null\n").ok());
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  return Uv(program);
}

TEST(UvTest, GetsTheVariablesThatSayWherePackagesComeFromAndNoOther) {
  ::setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
  ::setenv("GITHUB_TOKEN", "hidden", 1);
  ::setenv("PIP_INDEX_URL", "https://hidden.invalid", 1);
  ::setenv("UV_BUILD_CONSTRAINT", "hidden", 1);
  ::setenv("LD_PRELOAD_OF_TEST", "hidden", 1);
  ::setenv("UV_INDEX_OURS_PASSWORD", "shown", 1);
  ::setenv("NETRC", "/shown", 1);
  const std::string said = PrintingUv().Run({"pip", "list"})->out;
  EXPECT_THAT(said, HasSubstr("UV_INDEX_OURS_PASSWORD=shown"));
  EXPECT_THAT(said, HasSubstr("NETRC=/shown"));
  EXPECT_THAT(said, HasSubstr("PATH="));
  EXPECT_THAT(said, Not(HasSubstr("hidden")));
  ::unsetenv("NETRC");
}

TEST(UvTest, NeverBuildsAPackage) {
  for (const char* subcommand : {"compile", "install", "sync"})
    EXPECT_THAT(PrintingUv().Run({"pip", subcommand, "-"})->out,
                StartsWith(absl::StrCat("pip ", subcommand, " --no-build --no-sources -\n")));
  EXPECT_THAT(PrintingUv().Run({"venv", "x"})->out, StartsWith("venv x\n"));
}

TEST(UvTest, PackageChosenByItsSourcesHasAssumedMetadata) {
  ::unsetenv("UV_CONFIG_FILE");
  const std::string said =
      PrintingUv().Run({.arguments = {"pip", "compile", "-"}, .from_source = {"a-b"}})->out;
  EXPECT_THAT(said, StartsWith("pip compile --no-sources --only-binary :all: --no-binary a-b -\n"));
  EXPECT_THAT(said, HasSubstr("[[dependency-metadata]]\nname = \"a-b\"\nrequires-dist = []\n"));
}

TEST(UvTest, AssumedMetadataAlsoReachesUvBesideAFileThatTheUserNames) {
  const std::filesystem::path own = *CreateTempDirectory(::testing::TempDir(), "own-") / "my.toml";
  ASSERT_TRUE(WriteFile(own, "native-tls = true").ok());
  ::setenv("UV_CONFIG_FILE", own.c_str(), 1);
  const std::string said =
      PrintingUv().Run({.arguments = {"pip", "compile", "-"}, .from_source = {"a"}})->out;
  ::unsetenv("UV_CONFIG_FILE");
  EXPECT_THAT(said, HasSubstr("native-tls = true\n[[dependency-metadata]]"));
  EXPECT_THAT(said, Not(HasSubstr("UV_CONFIG_FILE=" + own.string())));
  EXPECT_THAT(said, HasSubstr("/uv.toml\n"));
}

TEST(UvTest, PackagesWithoutWheelsAreThoseOfTheHints) {
  const char* text =
      "error: No solution found when resolving dependencies\n  cause: Because b==1 has no usable "
      "wheels\n\nhint: Wheels are required for `b` because building from source is disabled for "
      "all "
      "packages (i.e., with `--no-build`)\n\nhint: Wheels are required for `A_a` because\n"
      "hint: Wheels are required for `../x` because\n";
  EXPECT_THAT(LacksWheels(Failed(text)), ElementsAre("a-a", "b"));
  EXPECT_THAT(LacksWheels(Failed(text, 0)), IsEmpty());
}

TEST(UvTest, RejectedPackagesAreThoseThatWereSearchedAndNotSelected) {
  const char* text =
      "DEBUG Searching for a compatible version of hydra-core (*)\nDEBUG Found stale response\n"
      "DEBUG Selecting: hydra-core==1.3.7 [compatible] (hydra_core-1.3.7-py3-none-any.whl)\n"
      "DEBUG Searching for a compatible version of Antlr4.x (>=4.9, <4.10)\n"
      "DEBUG Searching for a compatible version of ray[default] (*)\n"
      "DEBUG Selecting: ray[default]==2 [compatible] (ray.whl)\n"
      "DEBUG Searching for a compatible version of last (*)\n";
  EXPECT_THAT(RejectedPackages(Failed(text)), ElementsAre("antlr4-x", "last"));
  EXPECT_EQ(UvComplaint(Failed("DEBUG a\nerror: no\nDEBUG b\n")), "no");
}

TEST(UvTest, KilledUvSaysNothingAboutThePackages) {
  EXPECT_EQ(ErrorOf(Failed("", 137), "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorOf({.timed_out = true}, "x").code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(UvTest, BrokenPackageIsNotTheMachinesFault) {
  EXPECT_EQ(InstallationStatus(Failed("error: Failed to unzip wheel: a.whl\n", 2), "x").code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(
      InstallationStatus(
          Failed("error: failed to write\n  cause: Permission denied (os error 13)\n", 2), "x")
          .code(),
      absl::StatusCode::kInternal);
}

TEST(UvTest, MissingProgramIsAnErrorWithAdvice) {
  EXPECT_EQ(Uv("/no/uv").Run({"pip"}).status(),
            absl::FailedPreconditionError(
                "no uv at /no/uv: run tools/bkm, which installs it, or set BKM_UV"));
}

}  // namespace
}  // namespace bkm
