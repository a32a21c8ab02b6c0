// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<RuntimePolicy> Read(const char* text) {
  return RuntimePolicyFromJson(*ParseJson(text, "r/x.json"), "r/x.json");
}
std::string ErrorOf(const char* text) { return std::string(Read(text).status().message()); }

TEST(RuntimePolicyTest, ReadsAsOf) {
  EXPECT_EQ(*Read(R"({"schema": 1, "name": "x", "policy": "as-of", "python": "3.11",
                      "torch": "2.13.0", "torch_backend": "cpu", "base": ["torch=={torch}"],
                      "torch_brings": ["triton"], "torch_dictates": ["nvidia-*"]})"),
            (RuntimePolicy{.name = "x",
                           .python = "3.11",
                           .torch = "2.13.0",
                           .torch_backend = "cpu",
                           .policy = PolicyKind::kAsOf,
                           .base = {"torch=={torch}"},
                           .torch_brings = {"triton"},
                           .torch_dictates = {"nvidia-*"}}));
}

TEST(RuntimePolicyTest, PathsAreRelativeToTheFile) {
  EXPECT_EQ(Read(R"({"schema": 1, "name": "x", "policy": "locked", "python": "3.11",
                     "lock": "locks/a.json"})")
                ->lock,
            fs::path("r/locks/a.json"));
  EXPECT_EQ(Read(R"({"schema": 1, "name": "x", "policy": "existing", "python": "3.11",
                     "interpreter": "/elsewhere/env/bin/python"})")
                ->interpreter,
            fs::path("/elsewhere/env/bin/python"));
}

TEST(RuntimePolicyTest, MistakesNameFileAndPath) {
  EXPECT_EQ(ErrorOf(R"({"schema": 1, "name": "x", "policy": "asof", "python": "3.11"})"),
            "r/x.json: $.policy: unknown name 'asof': did you mean 'as-of'?");
  EXPECT_EQ(ErrorOf(R"({"schema": 1, "name": "y", "policy": "newest", "python": "3.11",
                        "torch": "2.13.0", "base": "torch=={torch}"})"),
            "r/x.json: $.name: 'y' is not the file's name");
  EXPECT_EQ(ErrorOf(R"({"schema": 1, "name": "x", "policy": "newest", "python": "3.11",
                        "torch": "2.13.0", "base": ["torch"]})"),
            "r/x.json: $.base: a requirement with {torch} is needed, such as torch=={torch}");
  EXPECT_EQ(ErrorOf(R"({"schema": 1, "name": "x", "policy": "as-of", "python": "3.11",
                        "torch": "2.13.0", "day": "2026-02-30", "base": ["torch=={torch}"]})"),
            "r/x.json: $.day: '2026-02-30' is not a day such as 2026-04-30");
  EXPECT_EQ(ErrorOf(R"({"schema": 1, "name": "x", "policy": "locked", "python": "3.11",
                        "lock": "a", "torch": "2.13.0"})"),
            "r/x.json: $: unknown key 'torch' (known: lock, name, policy, python, schema)");
  EXPECT_EQ(ErrorOf(R"({"schema": 2, "name": "x", "policy": "locked", "python": "3.11",
                        "lock": "a"})"),
            "r/x.json: $.schema: 2 is out of range: 1 to 1");
}

TEST(RuntimePolicyTest, UnknownNameListsTheKnownOnes) {
  EXPECT_EQ(ReadRuntimePolicy({"matrices/runtimes"}, "cpus").status().message(),
            "no runtime 'cpus' in matrices/runtimes: did you mean 'cpu'?");
}

TEST(RuntimePolicyTest, BringsWhatItsBaseNames) {
  const RuntimePolicy policy{.base = {"torch=={torch}", "accelerate", "peft>=0.10", "trl-x"}};
  for (const char* package : {"torch", "accelerate", "peft", "trl-x"})
    EXPECT_TRUE(Brings(policy, package)) << package;
  for (const char* package : {"tor", "acceler", "trl", "transformers"})
    EXPECT_FALSE(Brings(policy, package)) << package;
}

TEST(RuntimePolicyTest, NamesAreThoseOfTheFiles) {
  const std::vector<std::string> names = RuntimePolicyNames({"nowhere", "matrices/runtimes"});
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::count(names.begin(), names.end(), "cpu"), 1);
}

TEST(RuntimePolicyTest, EveryCommittedFileIsValid) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("matrices/runtimes")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_EQ(ReadRuntimePolicy({"matrices/runtimes"}, entry.path().stem()).status(),
              absl::OkStatus());
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace bkm
