// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// ci/gpu from the pack to the verdict, on this machine's CPU: a control cell that runs out of a
// pack, without worker and sandbox, sees bit by bit what the same cell of `bkm run` saw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr int kLargestPack = 64 << 20;
constexpr int kRuns = 2;

class GpuStoryTest : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  static ProcessResult Gpu(const std::vector<std::string>& arguments) {
    return *RunRealScript("ci/gpu", arguments);
  }
  static std::string Name(const std::string& name) {
    return absl::StrCat(GetParam()[1], "-", name);
  }
  static std::string Folder(const std::string& name) { return RealRunFolder(Name(name)).string(); }

  // The interpreter of the run's only cell: its environment has torch and the libraries.
  static std::string PythonOf(const Json& run) {
    const fs::path cell = fs::path(Folder("run")) / run["cells"][0]["dir"].get<std::string>();
    return (*ReadJsonFile(cell / "request.json"))["python"];
  }
};

TEST_P(GpuStoryTest, PackedCellSeesBitByBitWhatTheSameCellOfARunSaw) {
  std::vector<std::string> arguments = GetParam();
  arguments.insert(arguments.end(),
                   {"--precision", "fp32", "--documents", "24+40+2", "--steps", "1"});
  const absl::StatusOr<Json> run = RunRealCells(arguments, Name("run"));
  if (IsNoNetwork(run.status())) GTEST_SKIP() << run.status();
  ASSERT_TRUE(run.ok()) << run.status();
  const std::string pack = Folder("gpu.tar.gz"), results = Folder("results");

  const ProcessResult packed = Gpu({"pack", Folder("run"), "--out", pack, "--json"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT((*ParseJson(packed.out, "pack"))["bytes"].get<int>(), Lt(kLargestPack));

  const std::vector<std::string> run_pack = {"run",     pack,    "--python", PythonOf(*run),
                                             "--out",   results, "--work",   Folder("work"),
                                             "--steps", "2"};
  const ProcessResult without_device = Gpu(run_pack);
  EXPECT_EQ(without_device.exit_code, 2);
  EXPECT_THAT(without_device.err, HasSubstr("no CUDA device"));

  std::vector<std::string> on_cpu = run_pack;
  on_cpu.insert(on_cpu.end(), {"--device", "cpu"});
  const ProcessResult ran = Gpu(on_cpu);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;

  const ProcessResult judged = Gpu({"judge", results, "--run", Folder("run"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const Json table = *ParseJson(judged.out, "judge");
  ASSERT_THAT(table["cells"], SizeIs(1));
  const Json& cell = table["cells"][0];
  EXPECT_EQ(cell["ending"], "completed") << cell["exception"];
  EXPECT_EQ(cell["verdict"]["verdict"], "ok") << cell["verdict"];
  EXPECT_EQ(cell["against_cpu"]["bit_equal"], true) << cell["against_cpu"];
  EXPECT_EQ(cell["against_cpu"]["same_attention"], true);
  ASSERT_THAT(cell["same_again"], SizeIs(kRuns - 1));
  EXPECT_EQ(cell["same_again"][0]["bit_equal"], true) << cell["same_again"];
  EXPECT_THAT(cell["measures"]["step_seconds"], SizeIs(2)) << cell["measures"];
  // Every layer of qwen3, forward and backward.
  EXPECT_THAT(cell["measures"]["kernels"]["layers"], SizeIs(Ge(8 * 2))) << cell["measures"];
}

INSTANTIATE_TEST_SUITE_P(
    Controls, GpuStoryTest,
    ::testing::Values(std::vector<std::string>{"--engine", "transformers", "--library",
                                               "pypi:transformers==5.10.2", "--attention", "sdpa"},
                      std::vector<std::string>{"--engine", "torchtitan", "--library",
                                               "pypi:torchtitan==0.2.2", "--attention", "flex"}),
    [](const auto& info) { return info.param[1]; });

}  // namespace
}  // namespace bkm
