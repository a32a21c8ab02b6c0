// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm torture through the real program: killed, cut off and full machines lose nothing.
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

// Expects that nothing was lost, and returns what bkm torture counted.
Json ExpectSound(const std::vector<std::string>& limits, std::chrono::seconds timeout) {
  const BkmUnderTest bkm;
  std::vector<std::string> arguments = {"torture", "--json", "--quiet", "--out",
                                        (bkm.folder() / "torture").string()};
  arguments.insert(arguments.end(), limits.begin(), limits.end());
  Command command = bkm.MakeCommand(arguments);
  command.timeout = timeout;
  const ProcessResult result = *RunCommand(command);
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  const absl::StatusOr<Json> json = ParseJson(result.out, "bkm torture");
  return json.ok() ? *json : Json::object();
}

TEST(TortureTest, ShortTortureLosesRepeatsAndFalsifiesNothing) {
  const Json result = ExpectSound({"--minutes", "0.3", "--seed", "1"}, std::chrono::seconds(120));
  EXPECT_GT(result.value("killed", 0), 0);
  EXPECT_GT(result.value("rounds", 0), 0);
}

TEST(TortureTest, LongTortureLosesRepeatsAndFalsifiesNothing) {
  const Json result = ExpectSound({"--minutes", "5", "--seed", "2"}, std::chrono::seconds(600));
  EXPECT_GT(result.value("killed", 0), 50);
}

}  // namespace
}  // namespace bkm
