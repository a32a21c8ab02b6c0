// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// bkm torture on a matrix of real cells: uv and the reference worker are killed, too, and no cell
// changes its verdict. Needs the package registry.
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

// A documents list of its own, so that goldens and floors must be computed.
constexpr char kMatrix[] = R"({
  "schema": 1,
  "name": "small",
  "groups": [{
    "engine": {"kind": "transformers"},
    "library": ["pypi:transformers==5.10.2"],
    "runtime": "cpu",
    "probe": {"model": "qwen3", "attention": ["eager", "sdpa"], "precision": "fp32",
              "documents": [[24, 40, 2]]}
  }]
})";

TEST(TortureMatrixTest, KillsWhilePreparingLoseRepeatAndFalsifyNothing) {
  const std::filesystem::path folder = RealRunFolder("torture");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  const std::filesystem::path matrix = folder / "small.json";
  ASSERT_TRUE(WriteFile(matrix, kMatrix).ok());
  const absl::StatusOr<ProcessResult> result =
      RunRealBkm({"torture", "--matrix", matrix, "--minutes", "20", "--once-each", "--seed", "7",
                  "--json", "--quiet", "--out", folder / "work"});
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->exit_code == 2 && IsNoNetwork(result->err)) GTEST_SKIP() << result->err;
  EXPECT_EQ(result->exit_code, 0) << result->err << result->out;
  const absl::StatusOr<Json> json = ParseJson(result->out, "bkm torture");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_GT(json->value("rounds", 0), 0);
  const Json& took_place = ObjectOf(*json, "took_place");
  for (const auto& [kind, count] : took_place.items()) EXPECT_GT(count.get<int>(), 0) << kind;
  EXPECT_TRUE(took_place.contains("uv killed") && took_place.contains("reference worker killed"));
}

}  // namespace
}  // namespace bkm
