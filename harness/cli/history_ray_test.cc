// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Searches whose cells run on a real Ray cluster of this machine. Installs Ray: needs a registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "harness/base/files.h"
#include "harness/cli/history_fixture.h"
#include "harness/ray/testing_ray.h"
#include "harness/testing/no_network.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kBroken[] = "import fake_library.moved_away\n";

class HistoryRayTest : public HistoryFixture {
 protected:
  HistoryRayTest() : HistoryFixture("") {}

  void SetUp() override {
    const absl::StatusOr<RayEnvironment> made = RayFor(bkm_);
    if (IsNoNetwork(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
  }

  // What the command finds here, and then with its cells on Ray. Each has a store of its own.
  std::pair<Json, Json> HereAndOnRay(const std::string& command,
                                     const std::vector<std::string>& more) {
    const fs::path file = bkm_.out() / (command + ".json");
    std::vector<std::string> words = CommandLine(command, more);
    const ProcessResult here =
        bkm_.Run(words, {{"BKM_CACHE", (bkm_.folder() / "cache-here").string()}});
    EXPECT_EQ(here.exit_code, 0) << here.err;
    const Json found = *ReadJsonFile(file);
    fs::rename(bkm_.out(), bkm_.folder() / "here");
    words.insert(words.end(), {"--executor", "ray", "--ray-resources", "memory=0"});
    Command on_ray = bkm_.MakeCommand(words, {{"BKM_PYTHON", CellPython().string()}});
    on_ray.timeout = std::chrono::seconds(400);
    const ProcessResult there = *RunCommand(on_ray);
    EXPECT_EQ(there.exit_code, 0) << there.err;
    return {found, *ReadJsonFile(file)};
  }
};

// A search goes on with the first of several answers, so how much it measures is chance.
Json WithoutCount(Json stretches) {
  for (Json& stretch : stretches) stretch.erase("measured");
  return stretches;
}

TEST_F(HistoryRayTest, ABisectFindsTheSameCulprit) {
  for (int i = 0; i < 5; ++i) Commit();
  const std::string culprit = Commit(kBroken);
  for (int i = 0; i < 4; ++i) Commit(kBroken);

  const auto [here, there] = HereAndOnRay("bisect", {});

  EXPECT_EQ(here["culprit"]["commit"], culprit);
  EXPECT_EQ(there["culprit"], here["culprit"]);
  EXPECT_EQ(there["parents"], here["parents"]);
}

TEST_F(HistoryRayTest, ATimelineTellsTheSameStretches) {
  for (int i = 0; i < 4; ++i) Commit();
  for (int i = 0; i < 4; ++i) Commit(kBroken);
  Commit();

  const auto [here, there] = HereAndOnRay("timeline", {"--since", "2026-03-02", "--every", "2"});

  ASSERT_EQ(here["stretches"].size(), 3u) << here;
  EXPECT_EQ(WithoutCount(there["stretches"]), WithoutCount(here["stretches"]));
}

}  // namespace
}  // namespace bkm
