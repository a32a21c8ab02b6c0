// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/uv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/base/files.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST(UvTest, MissingProgramIsAnErrorWithAdvice) {
  EXPECT_EQ(Uv("/no/uv").Run({"pip"}).status(),
            absl::FailedPreconditionError(
                "no uv at /no/uv: run tools/bkm, which installs it, or set BKM_UV"));
}

}  // namespace
}  // namespace bkm
