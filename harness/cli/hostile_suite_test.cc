// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// ci/hostile: every hostile fixture ends as it must and changes nothing for its neighbours, and the
// script notices one that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

ProcessResult RunSuite(const BkmUnderTest& bkm, std::vector<std::string> arguments) {
  Command command = bkm.MakeCommand({});
  command.set_env["BKM"] = command.argv[0];
  command.argv = {"python3", Runfile("ci/hostile"), "--out", bkm.folder() / "hostile", "--jobs",
                  "2"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.timeout = std::chrono::seconds(280);
  return *RunCommand(command);
}

TEST(HostileSuiteTest, EachFixtureCostsOnlyItsOwnCell) {
  const BkmUnderTest bkm;
  const ProcessResult result = RunSuite(bkm, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const Json json = *ParseJson(result.out, "ci/hostile");
  EXPECT_GT(json["fixtures"]["packages"], 100);
  EXPECT_GT(json["fixtures"]["declarations"], 20);
  EXPECT_GT(json["fixtures"]["trees"], 20);
}

TEST(HostileSuiteTest, AnUnexpectedEndAndAnEscapeAreNoticed) {
  const BkmUnderTest bkm;
  ASSERT_TRUE(WriteFile(bkm.folder() / "own/packages.py", R"(import os


from fake_engine.outside import OUTSIDE


class Escaped(Exception):
    pass


def expect(*_):
    return lambda function: function


@expect("ok")
def exits():
    os._exit(3)


@expect("broken")
def escapes():
    raise Escaped("a secret")
)")
                  .ok());
  const ProcessResult result = RunSuite(bkm, {"--fixtures", bkm.folder() / "own"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("packages/exits: broken, exited"));
  EXPECT_THAT(result.out, HasSubstr("packages/escapes: ESCAPED: "));
  EXPECT_THAT(result.out, HasSubstr("6 equal to the run without hostile subjects"));
}

}  // namespace
}  // namespace bkm
