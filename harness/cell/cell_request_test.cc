// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace bkm {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

Json Minimal() { return {{"cell", "c"}, {"dir", "/run/c"}}; }

TEST(CellRequestTest, ReadsWhatTheWorkerNeedsAndKeepsTheRest) {
  Json json = Minimal();
  json["limits"] = {
      {"timeout_s", 1.5}, {"cpu_s", 0.5}, {"memory_mib", 2}, {"output_mib", 3}, {"processes", 4}};
  json["paths"] = {{"engine", "/e"}, {"library", nullptr}};
  json["probe_dir"] = "/p";
  json["adapter"] = "verl-fsdp";

  const absl::StatusOr<CellRequest> request = ParseCellRequest(json);

  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->cell, "c");
  EXPECT_EQ(request->dir, "/run/c");
  EXPECT_EQ(request->limits.timeout_s, 1.5);
  EXPECT_EQ(request->limits.cpu_s, 0.5);
  EXPECT_EQ(request->limits.memory_mib, 2);
  EXPECT_EQ(request->limits.output_mib, 3);
  EXPECT_EQ(request->limits.processes, 4);
  EXPECT_THAT(request->reads, UnorderedElementsAre("/e", "/p"));
  EXPECT_EQ(request->all, json);
}

TEST(CellRequestTest, IgnoresReadonlyOfRequestsThatOlderRunsStored) {
  Json json = Minimal();
  json["readonly"] = {"/r"};

  const absl::StatusOr<CellRequest> request = ParseCellRequest(json);

  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->reads, IsEmpty());
}

TEST(CellRequestTest, WithoutLimitsThereAreNone) {
  const absl::StatusOr<CellRequest> request = ParseCellRequest(Minimal());

  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->limits.timeout_s, 0);
  EXPECT_EQ(request->limits.cpu_s, 0);
  EXPECT_EQ(request->limits.memory_mib, 0);
}

TEST(CellRequestTest, ProcessorTimeFollowsFromTheTimeLimitAndTheThreadsOfAllRanks) {
  Json json = Minimal();
  json["limits"] = {{"timeout_s", 100}};
  EXPECT_EQ(ParseCellRequest(json)->limits.cpu_s, 125);
  json["probe"] = {{"threads", 2}, {"ranks", 4}};
  EXPECT_EQ(ParseCellRequest(json)->limits.cpu_s, 1000);
  json["probe"] = {{"threads", "many"}, {"ranks", -4}};
  EXPECT_EQ(ParseCellRequest(json)->limits.cpu_s, 125);
}

TEST(CellRequestTest, KnowsWhetherAGpuTakesPart) {
  Json json = Minimal();
  EXPECT_TRUE(ParseCellRequest(json)->on_cpu);
  json["probe"] = {{"device", "cpu"}};
  EXPECT_TRUE(ParseCellRequest(json)->on_cpu);
  json["probe"] = {{"device", "cuda"}};
  EXPECT_FALSE(ParseCellRequest(json)->on_cpu);
  json["limits"]["timeout_s"] = 100;
  EXPECT_EQ(ParseCellRequest(json)->limits.cpu_s,
            125.0 * std::max(1u, std::thread::hardware_concurrency()))
      << "compilers";
}

TEST(CellRequestTest, RefusesARelativeFolder) {
  EXPECT_EQ(ParseCellRequest({{"cell", "c"}, {"dir", "run/c"}}).status().message(),
            "request: $.dir must be an absolute path, not 'run/c'");
}

TEST(CellRequestTest, RefusesAnUnknownLimit) {
  Json json = Minimal();
  json["limits"] = {{"memory", 2}};

  EXPECT_EQ(ParseCellRequest(json).status().message(),
            "request: $.limits: unknown key 'memory' (known: cpu_s, memory_mib, output_mib, "
            "processes, timeout_s)");
}

}  // namespace
}  // namespace bkm
