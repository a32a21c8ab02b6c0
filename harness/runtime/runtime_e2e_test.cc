// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Tests resolution and creation against the real registry, with the real uv.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/runtime/environment_creator.h"
#include "harness/runtime/interpreter.h"
#include "harness/runtime/runtime_resolver.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RuntimeE2eTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<Uv> uv = Uv::Find();
    if (!uv.ok()) GTEST_SKIP() << uv.status().message();
    const ProcessResult asked = *uv->Run(
        {"pip", "compile", "--python", "/usr/bin/python3", "--no-deps", "-"}, "packaging==25.0\n");
    if (!asked.ok()) GTEST_SKIP() << "no registry: " << UvComplaint(asked);
    uv_ = std::make_unique<Uv>(*uv);
    cache_ = *CreateTempDirectory(::testing::TempDir(), "runtime-");
    engine_.spec = {SourceKind::kGit, "verl", "0"};
    engine_.label = "fake";
    engine_.date = "2026-03-16";
    engine_.tree = "/trees/verl";
  }
  absl::StatusOr<std::variant<RuntimeLock, NoSolution>> Resolve(RuntimePolicy policy) {
    return RuntimeResolver(catalog_, *uv_, {.cache = cache_, .python = "/usr/bin/python3"})
        .Resolve({.policy = std::move(policy), .engine = &engine_});
  }
  // A runtime with a small package in place of torch, for tests that install.
  static RuntimePolicy Small() {
    return {.name = "small",
            .python = "3.11",
            .torch = "25.0",
            .policy = PolicyKind::kAsOf,
            .base = {"packaging=={torch}"}};
  }

  SourceCatalog catalog_;
  fs::path cache_;
  std::unique_ptr<Uv> uv_;
  Subject engine_;
};

TEST_F(RuntimeE2eTest, CpuRuntimeHasTheCpuTorchAndWhatACudaTorchBrings) {
  engine_.requirements = {"numpy<2", "transformers"};
  const auto resolved = Resolve(*ReadRuntimePolicy({"matrices/runtimes"}, "cpu"));
  if (absl::IsFailedPrecondition(resolved.status()) || absl::IsUnavailable(resolved.status())) {
    GTEST_SKIP() << resolved.status().message();  // no CPU torch for this machine
  }
  const RuntimeLock lock = std::get<RuntimeLock>(*resolved);
  EXPECT_EQ(lock.VersionOf("torch"), "2.13.0+cpu");
  EXPECT_EQ(lock.VersionOf("triton"), "3.7.1");
  EXPECT_EQ(lock.VersionOf("numpy"), "1.26.4");
  EXPECT_EQ(lock.VersionOf("transformers"), "5.4.0");  // the last release of 2026-03
  for (const LockedPackage& package : lock.packages) {
    EXPECT_FALSE(package.name.starts_with("nvidia-")) << package.name;
  }
}

TEST_F(RuntimeE2eTest, RealConflictIsNoSolutionWithAMessage) {
  engine_.requirements = {"packaging<24"};
  EXPECT_THAT(std::get<NoSolution>(*Resolve(Small())).message,
              AllOf(HasSubstr("packaging"), HasSubstr("(verl fake asks packaging<24)")));
}

TEST_F(RuntimeE2eTest, EnvironmentHoldsTheLockAndIsCompiled) {
  engine_.requirements = {"six"};
  const RuntimeLock lock = std::get<RuntimeLock>(*Resolve(Small()));
  const fs::path python = *EnvironmentCreator(*uv_, cache_, "/usr/bin/python3").Create(lock);
  const InterpreterFacts facts = *ReadInterpreter(python);
  for (const LockedPackage& package : lock.packages) {
    EXPECT_EQ(facts.packages.at(package.name), package.version);
  }
  EXPECT_EQ(facts.packages.size(), lock.packages.size());
  EXPECT_TRUE(fs::exists(python.parent_path().parent_path() /
                         "lib/python3.11/site-packages/packaging/__pycache__"));
}

}  // namespace
}  // namespace bkm
