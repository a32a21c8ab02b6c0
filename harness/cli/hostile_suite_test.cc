// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// ci/hostile: every hostile fixture ends as it must and changes nothing for its neighbours, and the
// script notices one that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessResult RunSuite(const BkmUnderTest& bkm, const fs::path& program,
                       std::vector<std::string> arguments) {
  Command command = bkm.MakeCommand({});
  command.set_env["BKM"] = program;
  command.argv = {"python3", Runfile("ci/hostile"), "--out", bkm.folder() / "hostile", "--jobs",
                  "2"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.timeout = std::chrono::seconds(600);
  return *RunCommand(command);
}

TEST(HostileSuiteTest, EachFixtureCostsOnlyItsOwnCell) {
  const BkmUnderTest bkm;
  const ProcessResult result = RunSuite(bkm, bkm.MakeCommand({}).argv[0], {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const Json json = *ParseJson(result.out, "ci/hostile");
  EXPECT_GT(json["fixtures"]["packages"], 100);
  EXPECT_GT(json["fixtures"]["declarations"], 20);
  EXPECT_GT(json["fixtures"]["trees"], 20);
  EXPECT_GE(json["neighbours"], 18);
}

TEST(HostileSuiteTest, TheWeakLevelKeepsWhatItsPageSays) {
  const BkmUnderTest bkm;
  const ProcessResult result =
      RunSuite(bkm, bkm.MakeCommand({}).argv[0], {"--json", "--sandbox", "weak"});
  if (result.exit_code == 2 && absl::StrContains(result.err, "sandbox level 'weak'"))
    GTEST_SKIP() << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_GE((*ParseJson(result.out, "ci/hostile"))["fixtures"]["packages"], 9);
}

// The same as by hand, a hundred times smaller.
TEST(HostileSuiteTest, ADamagedFileIsRefusedInOneSentence) {
  const BkmUnderTest bkm;
  Command command = bkm.MakeCommand({});
  command.set_env["BKM"] = command.argv[0];
  command.argv = {"python3", Runfile("ci/mutate"), "--count", "10", "--jobs", "2", "--json"};
  for (const char* format : {"matrix", "runtime", "run.json", "verdict", "observation", "observed",
                             "bundle", "results", "lock", "store"})
    command.argv.push_back(format);
  command.timeout = std::chrono::seconds(300);
  const ProcessResult result = *RunCommand(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = *ParseJson(result.out, "ci/mutate");
  EXPECT_EQ(json["formats"].size(), 10u);
  EXPECT_GT(json["formats"]["matrix"].value("exit 2", 0), 5);
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
def leaves_all_alone():
    pass


@expect("ok")
def exits():
    os._exit(3)


@expect("broken", "raised")
def escapes():
    raise Escaped("a secret")


@expect("broken", "raised")
def ends_for_another_reason():
    os._exit(3)
)")
                  .ok());
  const ProcessResult result =
      RunSuite(bkm, bkm.MakeCommand({}).argv[0], {"--fixtures", bkm.folder() / "own"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("packages/exits: broken, exited"));
  EXPECT_THAT(result.out, HasSubstr("packages/escapes: ESCAPED: "));
  EXPECT_THAT(result.out, HasSubstr("packages/ends_for_another_reason: broken, exited"));
  EXPECT_THAT(result.out, HasSubstr("1 as expected"));
  EXPECT_THAT(result.out, Not(HasSubstr("neighbours/")));
}

// A bkm whose second run, among the hostile subjects, does what no hostile subject may do.
TEST(HostileSuiteTest, ADifferingNeighbourAndASurvivorAreNoticed) {
  const BkmUnderTest bkm;
  ASSERT_TRUE(WriteFile(bkm.folder() / "own/packages.py",
                        "def expect(*_):\n    return lambda function: function\n\n\n"
                        "@expect(\"ok\")\ndef leaves_all_alone():\n    pass\n")
                  .ok());
  const fs::path program = bkm.folder() / "other-bkm";
  ASSERT_TRUE(WriteFile(program, absl::StrCat("#!/bin/bash\nout=$4\n", bkm.MakeCommand({}).argv[0],
                                              R"sh( "$@"
status=$?
[ "${out##*/}" = all ] || exit $status
edit() { python3 -c 'import sys; path, old, new = sys.argv[1:]
data = open(path, "rb").read()
assert old.encode() in data, path
open(path, "wb").write(data.replace(old.encode(), new.encode(), 1))' "$@"; }
find() { dirname "$(grep -l "neighbours/$1/engine" "$out"/cells/*/request.json)";
}
edit "$(find prints_on_both_streams)/stdout" 'line 7 ' 'line 8 '
echo x >> "$(find computes_in_threads)/stderr"
edit "$(find writes_tensors)/tensors/step1.safetensors" log_probs log_prob5
edit "$(find reads_its_whole_tree)/observed.json" fake_engine/absent fake_engine/4bsent
edit "$(find reports_many_facts)/observation.json" '"value": 70' '"value": 80'
cd "$(find makes_many_files)" && rm work/made/3/13
setsid sleep 300 >/dev/null 2>&1 </dev/null &
echo $! > "$0.survivor"
exit $status
)sh"))
                  .ok());
  fs::permissions(program, fs::perms(0755));

  const ProcessResult result = RunSuite(bkm, program, {"--fixtures", bkm.folder() / "own"});

  EXPECT_EQ(result.exit_code, 1);
  const auto differs = [](const char* name, const char* part) {
    return HasSubstr(absl::StrCat("neighbours/", name, ": differs beside hostile cells in ", part));
  };
  EXPECT_THAT(result.out, differs("prints_on_both_streams", "stdout: "));
  EXPECT_THAT(result.out, differs("computes_in_threads", "stderr: "));
  EXPECT_THAT(result.out, differs("writes_tensors", "tensors/step1.safetensors: "));
  EXPECT_THAT(result.out, differs("reads_its_whole_tree", "observed.json: "));
  EXPECT_THAT(result.out, differs("reports_many_facts", "observation.json: "));
  EXPECT_THAT(result.out, differs("makes_many_files", "work/made/3/13: "));
  EXPECT_THAT(result.out, HasSubstr("13 equal to the run without hostile subjects"));
  int survivor = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*ReadFile(program.string() + ".survivor"), &survivor));
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat("a process is left: ", survivor, ": sleep 300")));
  ::kill(survivor, SIGKILL);
}

}  // namespace
}  // namespace bkm
