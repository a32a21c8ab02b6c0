// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm torture through the real program: killed, cut off and full machines lose nothing.
#include <gtest/gtest.h>

#include <set>

#include "harness/base/files.h"
#include "harness/base/json_facts.h"
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

// Expects that each kind of disturbance was seen to take place.
void ExpectEachKind(const Json& result) {
  std::set<std::string> kinds;
  for (const auto& [kind, count] : ObjectOf(result, "took_place").items()) {
    kinds.insert(kind);
    EXPECT_GT(count.get<int>(), 0) << kind;
  }
  const Json& not_possible = ObjectOf(result, "not_possible");
  for (const auto& [kind, why] : not_possible.items()) kinds.insert(kind);
  EXPECT_EQ(kinds, (std::set<std::string>{"clock jumps", "damaged cache", "disk full",
                                          "disk full for some writes", "flipped bit",
                                          "one cell's folder fails", "power cut", "runner killed",
                                          "slow disk", "two runners", "workers and cells killed"}));
  const Json& killed = ObjectOf(result, "killed_by_role");
  for (const char* role : {"runner", "worker", "cell"}) EXPECT_GT(killed.value(role, 0), 0) << role;
  EXPECT_GT(result.value("rounds", 0), 0);
  if (!not_possible.empty()) GTEST_SKIP() << not_possible.dump();
}

TEST(TortureTest, ShortTortureLosesRepeatsAndFalsifiesNothing) {
  ExpectEachKind(
      ExpectSound({"--minutes", "8", "--once-each", "--seed", "1"}, std::chrono::seconds(700)));
}

TEST(TortureTest, LongTortureLosesRepeatsAndFalsifiesNothing) {
  const Json result = ExpectSound({"--minutes", "5", "--seed", "2"}, std::chrono::seconds(600));
  EXPECT_GT(result.value("killed", 0), 50);
  ExpectEachKind(result);
}

}  // namespace
}  // namespace bkm
