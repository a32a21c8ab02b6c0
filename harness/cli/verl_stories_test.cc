// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// How torchtitan's changes affected users of verl v0.7.1, on the real code: loud failures as
// released, and silent failures after manual patches. Needs the mirrors ($BKM_GIT_MIRRORS) and the
// package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ErasTest : public SharedRunTest<ErasTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make({"fixtures/matrices/eras.json", "--no-controls"}, "eras");
  }

 protected:
  static std::string ReasonOn(const char* library) {
    return run().ReasonOf({{"library_label", library}});
  }
  static std::string MessageOn(const char* library) {
    return run().Cell({{"library_label", library}})["message"];
  }
};

TEST_F(ErasTest, WorksUntilInnerAttentionBecomesAConfigAndThenNamesTheAttributeThatIsGone) {
  EXPECT_EQ(ReasonOn("261819688~1"), "ok at golden, ");
  EXPECT_EQ(ReasonOn("261819688"), "broken at construct, attribute-missing");
  EXPECT_THAT(MessageOn("261819688"), HasSubstr("attn_backend"));
}

// torchtitan introduced the factories two days before it renamed `layer` to `layers`. The flavor
// look-up fails first before and after that change, and before and after model_registry accepted
// attn_backend.
TEST_F(ErasTest, FlavorsThatAreFactoriesAreNotFoundAndHideEveryLaterChange) {
  for (const char* library : {"4b3347467~1", "4b3347467", "7cec16600~1", "7cec16600"}) {
    EXPECT_EQ(ReasonOn(library), "broken at construct, lookup-failed") << library;
    EXPECT_THAT(MessageOn(library), HasSubstr("No matching torchtitan flavor")) << library;
  }
}

// verl v0.7.1 with the changes of fixtures/patches, in `folder`.
absl::Status MakePatchedVerl(const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path archive = fs::path(::testing::TempDir()) / "verl.tar";
  const fs::path patch = fs::absolute("fixtures/patches/verl-0.7.1-later-torchtitan.patch");
  const std::vector<std::vector<std::string>> commands = {
      {"git", "-C", (Mirrors() / "verl.git").string(), "archive", "--output", archive.string(),
       "v0.7.1", "verl", "setup.py"},
      {"tar", "-xf", archive.string(), "-C", folder.string()},
      {"git", "-C", folder.string(), "apply", "--unidiff-zero", patch.string()}};
  for (const std::vector<std::string>& argv : commands) {
    // A repository around the folder must not influence `git apply`.
    ASSIGN_OR_RETURN(
        const ProcessResult result,
        RunCommand({.argv = argv,
                    .set_env = {{"GIT_CEILING_DIRECTORIES", folder.parent_path().string()}}}));
    if (!result.ok()) return absl::InternalError(absl::StrCat(argv[0], ": ", result.err));
  }
  return absl::OkStatus();
}

class PatchedVerlTest : public SharedRunTest<PatchedVerlTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    const fs::path folder = fs::path(::testing::TempDir()) / "patched";
    const fs::path verl = folder / "verl-0.7.1-patched";
    RETURN_IF_ERROR(MakePatchedVerl(verl));
    // The packages of that month, because today's do not satisfy the pins of verl 0.7.1.
    ASSIGN_OR_RETURN(Json runtime, ReadJsonFile("matrices/runtimes/cpu.json"));
    runtime["name"] = "april";
    runtime["day"] = "2026-04-30";
    RETURN_IF_ERROR(WriteFile(folder / "runtimes/april.json", ToText(runtime)));
    const Json matrix = {
        {"schema", 1},
        {"name", "patched"},
        {"groups",
         {{{"engine", {{"kind", "verl-torchtitan"}, {"subjects", "path:" + verl.string()}}},
           {"library", {"git:torchtitan@7cec16600", "git:torchtitan@c4b409af2"}},
           {"runtime", "april"},
           {"probe", {{"attention", "flex"}}}}}}};
    RETURN_IF_ERROR(WriteFile(folder / "patched.json", ToText(matrix)));
    return RealRun::Make({(folder / "patched.json").string(), "--no-controls"}, "patched-run");
  }
};

TEST_F(PatchedVerlTest, RunsWithAnotherAttentionThanWasAskedAndIsCaught) {
  for (const char* library : {"7cec16600", "c4b409af2"}) {
    const RealRun::Fields cell = {{"library_label", library}};
    EXPECT_EQ(run().ReasonOf(cell), "wrong at backend, override-ignored") << library;
    EXPECT_THAT(
        run().Cell(cell)["message"].get<std::string>(),
        AllOf(HasSubstr("ScaledDotProductAttention"), HasSubstr("\"causal across documents\"")));
    // All steps ran without an error: only the judge reveals the failure.
    const Json observation = run().FileOf(cell, "observation.json");
    EXPECT_EQ(observation["ending"]["kind"], "completed") << library;
    EXPECT_EQ(observation["steps"].size(), 3) << library;
  }
}

}  // namespace
}  // namespace bkm
