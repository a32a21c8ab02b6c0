// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A fake uv: a shell script that records its input and answers with one package, or fails when its
// input contains the word in FAIL.
constexpr char kFakeUv[] = R"sh(#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/arguments"
cat > "$here/input"
while [ $# -gt 0 ]; do [ "$1" = --overrides ] && cp "$2" "$here/overrides"; shift; done
if [ -f "$here/fail" ] && grep -q "$(cat "$here/fail")" "$here/input"; then
  echo 'error: No solution found when resolving dependencies' >&2
  echo '  cause: Because you require numpy<2 and numpy>=2, they are unsatisfiable.' >&2
  exit 1
fi
if grep -q '!=' "$here/input"; then
  for package in triton nvidia_nccl_cu12; do
    echo "[[packages]]"
    echo "name = \"$package\""
    echo 'version = "7"'
    echo 'wheels = [{url = "file:///x/p.whl", hashes = {sha256 = "cd"}}]'
  done
fi
echo '[[packages]]'
echo 'name = "torch"'
if [ -f "$here/cold" ]; then
  rm "$here/cold"
  echo 'version = "1"'
else
  echo 'version = "2.13.0+cpu"'
fi
echo 'wheels = [{url = "file:///x/t.whl", hashes = {sha256 = "ab"}}]'
)sh";

class RuntimeResolverTest : public ::testing::Test {
 protected:
  RuntimeResolverTest() : root_(*CreateTempDirectory(::testing::TempDir(), "runtime-")) {
    EXPECT_TRUE(WriteFile(root_ / "uv", kFakeUv).ok());
    fs::permissions(root_ / "uv", fs::perms(0755));
    engine_.spec = {SourceKind::kGit, "verl", "0"};
    engine_.label = "v0.8.0";
    engine_.date = "2026-06-01";
    engine_.tree = "/trees/verl";
    engine_.requirements = {"numpy<2", "ray[default]>=2", "torchtitan>=0.2", "accelerate"};
    library_.spec = {SourceKind::kGit, "torchtitan", "0"};
    library_.label = "baba6d82e";
    library_.date = "2026-03-31";
    library_.tree = "/trees/torchtitan";
    library_.requirements = {"datasets", "numpy>=2"};
    request_.policy = {.name = "cpu",
                       .python = "3.11",
                       .torch = "2.13.0",
                       .policy = PolicyKind::kAsOf,
                       .base = {"torch=={torch}+cpu"}};
    request_.engine = &engine_;
    request_.library = &library_;
  }
  absl::StatusOr<std::variant<RuntimeLock, NoSolution>> Resolve(
      sys_days today = sys_days(year(2026) / month(11) / day(21))) {
    return RuntimeResolver(catalog_, Uv(root_ / "uv"),
                           {.cache = root_ / "cache", .python = "/usr/bin/python3", .today = today})
        .Resolve(request_);
  }
  std::string Said(const char* name) { return ReadFile(root_ / name).value_or(""); }
  std::string CutoffOn(sys_days today) { return std::get<RuntimeLock>(*Resolve(today)).cutoff; }

  fs::path root_;
  SourceCatalog catalog_;
  Subject engine_, library_;
  RuntimeRequest request_;
};

TEST_F(RuntimeResolverTest, ResolvesDeclarationsInOrderThenTheBaseWithoutSourceTrees) {
  request_.extra = {"einops"};
  const RuntimeLock lock = std::get<RuntimeLock>(*Resolve());
  EXPECT_EQ(Said("input"),
            "numpy<2\nray[default]>=2\naccelerate\ndatasets\nnumpy>=2\neinops\ntorch==2.13.0+cpu");
  EXPECT_THAT(lock.packages, ElementsAre(LockedPackage{"torch", "2.13.0+cpu", {"ab"}}));
  EXPECT_EQ(lock.policy, "as-of");
}

TEST_F(RuntimeResolverTest, EqualRequestsAreResolvedOnce) {
  const RuntimeLock first = std::get<RuntimeLock>(*Resolve());
  const std::string asked = Said("arguments");
  EXPECT_EQ(std::get<RuntimeLock>(*Resolve()), first);
  EXPECT_EQ(Said("arguments"), asked);
}

TEST_F(RuntimeResolverTest, AnAnswerCountsOnceItWasGivenTwiceInARow) {
  ASSERT_TRUE(WriteFile(root_ / "cold", "").ok());
  const RuntimeLock lock = std::get<RuntimeLock>(*Resolve());
  EXPECT_THAT(lock.packages, ElementsAre(LockedPackage{"torch", "2.13.0+cpu", {"ab"}}));
}

TEST_F(RuntimeResolverTest, FindsWhatWasResolvedWithoutTheResolver) {
  request_.policy.torch_brings = {"triton"};
  RuntimeResolver resolver(catalog_, Uv(root_ / "uv"),
                           {.cache = root_ / "cache", .python = "/usr/bin/python3"});
  EXPECT_EQ(*resolver.Find(request_), std::nullopt);
  EXPECT_EQ(Said("arguments"), "");
  const RuntimeLock lock = std::get<RuntimeLock>(*resolver.Resolve(request_));
  const std::string asked = Said("arguments");
  EXPECT_EQ(*resolver.Find(request_), lock);
  EXPECT_EQ(Said("arguments"), asked);
}

// Changes the bytes of the only file of this kind, and returns its path.
fs::path Damage(const fs::path& folder, const std::string& end, bool shorten) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!absl::EndsWith(entry.path().string(), end)) continue;
    std::string text = *ReadFile(entry.path());
    shorten ? text.resize(text.size() / 2) : void(text[text.size() / 2] ^= 1);
    EXPECT_TRUE(WriteFile(entry.path(), text).ok());
    return entry.path();
  }
  ADD_FAILURE() << "no file " << end << " in " << folder;
  return {};
}

TEST_F(RuntimeResolverTest, DamagedLockIsSetAsideReportedAndResolvedAgain) {
  request_.policy.torch_brings = {"triton"};
  std::vector<std::string> told;
  RuntimeResolver resolver(catalog_, Uv(root_ / "uv"),
                           {.cache = root_ / "cache",
                            .python = "/usr/bin/python3",
                            .report = [&](const std::string& what) { told.push_back(what); }});
  const RuntimeLock lock = std::get<RuntimeLock>(*resolver.Resolve(request_));
  for (const bool shorten : {false, true}) {
    for (const auto& [folder, end] :
         {std::pair("locks", ".json"), std::pair("registry", "-brings.json")}) {
      told.clear();
      const fs::path file = Damage(root_ / "cache" / folder, end, shorten);
      EXPECT_EQ(*resolver.Find(request_), std::nullopt);
      EXPECT_THAT(told, ElementsAre(::testing::StartsWith(file.string() + " is damaged: ")));
      EXPECT_EQ(std::get<RuntimeLock>(*resolver.Resolve(request_)), lock);
      EXPECT_EQ(*resolver.Find(request_), lock);
      EXPECT_EQ(told.size(), 1u);
    }
  }
}

TEST_F(RuntimeResolverTest, RequestsThatAreResolvedAlikeHaveOneKey) {
  const RuntimeResolver resolver(catalog_, Uv(root_ / "uv"),
                                 {.cache = root_ / "cache", .python = "/usr/bin/python3"});
  const std::string key = resolver.KeyOf(request_);
  engine_.label = "another commit of the same month that declares the same";
  engine_.date = "2026-06-29";
  EXPECT_EQ(resolver.KeyOf(request_), key);
  request_.torch = "2.12.0";
  EXPECT_NE(resolver.KeyOf(request_), key);
  request_.torch = "";
  request_.relax = {"numpy"};
  EXPECT_NE(resolver.KeyOf(request_), key);
  request_.relax = {};
  engine_.date = "2026-07-01";
  EXPECT_NE(resolver.KeyOf(request_), key);
  engine_.date = "2026-06-29";
  library_.requirements.push_back("einops");
  EXPECT_NE(resolver.KeyOf(request_), key);
}

TEST_F(RuntimeResolverTest, NoSolutionNamesTheSubjectsOfItsOwnRequest) {
  EXPECT_EQ(NoSolutionOf(request_, "numpy cannot be had").message,
            "numpy cannot be had (verl v0.8.0 asks numpy<2; torchtitan baba6d82e asks numpy>=2)");
  engine_.label = "main";
  EXPECT_EQ(NoSolutionOf(request_, "numpy cannot be had").message,
            "numpy cannot be had (verl main asks numpy<2; torchtitan baba6d82e asks numpy>=2)");
}

TEST_F(RuntimeResolverTest, CutoffIsTheEndOfTheLaterSubjectsMonth) {
  EXPECT_EQ(CutoffOn(year(2026) / month(11) / day(21)), "2026-07-01T00:00:00Z");
  library_.date = "2025-12-31";
  engine_.date = "2025-12-01";
  EXPECT_EQ(CutoffOn(year(2026) / month(11) / day(21)), "2026-01-01T00:00:00Z");
  EXPECT_THAT(Said("arguments"), HasSubstr("--exclude-newer 2026-01-01T00:00:00Z "
                                           "--exclude-newer-package torch=false"));
}

TEST_F(RuntimeResolverTest, MonthThatIsNotOverEndsToday) {
  EXPECT_EQ(CutoffOn(year(2026) / month(6) / day(29)), "2026-06-30T00:00:00Z");
  EXPECT_EQ(CutoffOn(year(2026) / month(6) / day(30)), "2026-07-01T00:00:00Z");
}

TEST_F(RuntimeResolverTest, FolderCountsAsNew) {
  library_.date = "";
  EXPECT_EQ(CutoffOn(year(2026) / month(11) / day(21)), "2026-11-22T00:00:00Z");
}

TEST_F(RuntimeResolverTest, DayOfThePolicyIsTheLastThatCounts) {
  library_.date = "";
  request_.policy.day = year(2026) / month(4) / day(30);
  EXPECT_EQ(CutoffOn(year(2026) / month(11) / day(21)), "2026-05-01T00:00:00Z");
}

TEST_F(RuntimeResolverTest, NewestHasNoCutoff) {
  request_.policy.policy = PolicyKind::kNewest;
  EXPECT_EQ(std::get<RuntimeLock>(*Resolve()).cutoff, "");
  EXPECT_THAT(Said("arguments"), Not(HasSubstr("--exclude-newer")));
}

TEST_F(RuntimeResolverTest, TorchIsAnAxis) {
  request_.torch = "2.11.0";
  ASSERT_TRUE(Resolve().ok());
  EXPECT_THAT(Said("input"), HasSubstr("torch==2.11.0+cpu"));
}

TEST_F(RuntimeResolverTest, PackagesOfTorchAreAddedAndExemptFromTheCutoff) {
  request_.policy.torch_brings = {"triton", "absent"};
  request_.policy.torch_dictates = {"nvidia-*"};
  const RuntimeLock lock = std::get<RuntimeLock>(*Resolve());
  EXPECT_THAT(Said("input"), HasSubstr("torch==2.13.0+cpu\ntriton==7"));
  EXPECT_THAT(lock.exempt, ElementsAre("triton", "absent", "torch", "nvidia-nccl-cu12"));
  EXPECT_THAT(Said("arguments"), HasSubstr("--exclude-newer-package nvidia-nccl-cu12=false"));
}

TEST_F(RuntimeResolverTest, ConflictIsAVerdictThatSaysWhoRequiresWhat) {
  ASSERT_TRUE(WriteFile(root_ / "fail", "numpy").ok());
  EXPECT_EQ(std::get<NoSolution>(*Resolve()).message,
            "Because you require numpy<2 and numpy>=2, they are unsatisfiable. (verl v0.8.0 asks "
            "numpy<2; torchtitan baba6d82e asks numpy>=2)");
}

TEST_F(RuntimeResolverTest, BaseThatCannotBeResolvedIsAnErrorAndNoVerdict) {
  ASSERT_TRUE(WriteFile(root_ / "fail", "torch").ok());
  const absl::Status status = Resolve().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not even its base (torch==2.13.0+cpu) can be resolved here"));
}

TEST_F(RuntimeResolverTest, RelaxedPackageLosesEveryPinButTheLibraryAxis) {
  request_.relax = {"numpy"};
  EXPECT_THAT(std::get<RuntimeLock>(*Resolve()).relaxed, ElementsAre("numpy"));
  EXPECT_EQ(Said("overrides"), "numpy");
  library_.tree = "";
  library_.spec = {SourceKind::kPypi, "transformers", "5.10.2"};
  library_.requirements = {"transformers==5.10.2"};
  request_.relax = {"Transformers"};
  EXPECT_THAT(std::get<RuntimeLock>(*Resolve()).relaxed, ElementsAre("transformers"));
  EXPECT_EQ(Said("overrides"), "transformers==5.10.2");
}

TEST_F(RuntimeResolverTest, WrongInterpreterIsAnError) {
  request_.policy.python = "3.8";
  EXPECT_THAT(std::string(Resolve().status().message()),
              HasSubstr("runtime cpu needs Python 3.8, but /usr/bin/python3 is 3."));
}

TEST_F(RuntimeResolverTest, LockedAlwaysRuns) {
  RuntimeLock lock{.runtime = "old",
                   .policy = "as-of",
                   .python = "3.11",
                   .packages = {{"numpy", "1.0", {"aa"}}}};
  ASSERT_TRUE(WriteFile(root_ / "lock.json", ToText(ToJson(lock))).ok());
  request_.policy = {.name = "frozen",
                     .python = "3.11",
                     .policy = PolicyKind::kLocked,
                     .lock = root_ / "lock.json"};
  lock.runtime = "frozen";
  lock.policy = "locked";
  EXPECT_EQ(std::get<RuntimeLock>(*Resolve()), lock);
  EXPECT_EQ(Said("arguments"), "");
}

TEST_F(RuntimeResolverTest, ExistingReadsTheInterpretersVersions) {
  request_.policy = {.name = "mine",
                     .python = "3.11",
                     .policy = PolicyKind::kExisting,
                     .interpreter = "/usr/bin/python3"};
  const RuntimeLock lock = std::get<RuntimeLock>(*Resolve());
  EXPECT_EQ(lock.interpreter, fs::path("/usr/bin/python3"));
  EXPECT_EQ(lock.policy, "existing");
  request_.policy.interpreter = "/no/python";
  EXPECT_EQ(Resolve().status().message(),
            "the Python interpreter /no/python does not run: no such program");
}

TEST(RequirementNameTest, IsNormalizedAndStopsAtTheFirstOtherCharacter) {
  EXPECT_EQ(RequirementName("Ray[default]>=2.41.0"), "ray");
  EXPECT_EQ(RequirementName("spmd_types==0.2.1"), "spmd-types");
  EXPECT_EQ(RequirementName("numpy <2 ; python_version > '3'"), "numpy");
}

class AllowsTest : public RuntimeResolverTest {
 protected:
  AllowsTest() {
    lock_.policy = "as-of";
    lock_.requirements = {"numpy<2", "ray[default]>=2", "accelerate", "datasets"};
    lock_.packages = {{"numpy", "1.26.4", {}}, {"torch", "2.13.0+cpu", {}}};
    library_.requirements = {"datasets"};
  }
  bool Allows() {
    return *RuntimeResolver(catalog_, Uv(root_ / "uv"),
                            {.cache = root_ / "cache", .python = "/usr/bin/python3"})
                .Allows(request_, lock_);
  }
  RuntimeLock lock_;
};

TEST_F(AllowsTest, LockAllowsItsOwnRequirements) {
  EXPECT_TRUE(Allows());
  EXPECT_EQ(Said("arguments"), "");
}

TEST_F(AllowsTest, OtherPinIsLookedUpAmongTheLocksVersionsOnce) {
  library_.requirements = {"datasets", "torch>=2.10"};
  EXPECT_TRUE(Allows());
  EXPECT_EQ(Said("input"), "torch>=2.10");
  EXPECT_THAT(Said("arguments"), HasSubstr("--no-deps --constraints "));
  const std::string asked = Said("arguments");
  EXPECT_TRUE(Allows());
  EXPECT_EQ(Said("arguments"), asked);
}

TEST_F(AllowsTest, LockDoesNotAllowPinsThatContradictIt) {
  ASSERT_TRUE(WriteFile(root_ / "fail", "numpy>=2").ok());
  library_.requirements = {"numpy>=2"};
  EXPECT_FALSE(Allows());
  request_.relax = {"numpy"};
  EXPECT_TRUE(Allows());
}

TEST_F(AllowsTest, LockDoesNotAllowAPackageThatItLacks) {
  lock_.packages = {{"numpy", "1.26.4", {}}};
  library_.requirements = {"torch>=2.10"};
  EXPECT_FALSE(Allows());
}

TEST_F(AllowsTest, RuntimeThatIsNotResolvedAllowsEverything) {
  request_.policy.policy = PolicyKind::kExisting;
  library_.requirements = {"numpy>=2"};
  EXPECT_TRUE(Allows());
}

}  // namespace
}  // namespace bkm
