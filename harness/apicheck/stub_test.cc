// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Stubs, as the static check and Python see them.
#include "harness/apicheck/stub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/apicheck/checked_pair.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StubTest : public CheckedPair {
 protected:
  // Writes a stub for the first violation; false if none is possible.
  bool StubTheFirst() {
    const std::vector<Violation> found = FoundViolations();
    EXPECT_FALSE(found.empty());
    if (found.empty()) return false;
    const auto stub = MakeStub(found[0], [&](const std::string& path) {
      const auto text = ReadFile(library_folder() / "lib" / path);
      return absl::StatusOr<std::optional<std::string>>(
          text.ok() ? std::optional<std::string>(*text) : std::nullopt);
    });
    EXPECT_TRUE(stub.ok()) << stub.status();
    if (!stub.ok() || !*stub) return false;
    Library((*stub)->path, (*stub)->text);
    return true;
  }
  // What Python prints, errors included.
  std::string Run(const std::string& code) {
    const auto result = RunCommand(
        {.argv = {"/usr/bin/python3", "-c", code},
         .set_env = {{"PYTHONPATH", library_folder().string()}, {"PYTHONDONTWRITEBYTECODE", "1"}}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->out + result->err : "";
  }
};

TEST_F(StubTest, AMissingModuleIsThereAndRefusesToBeUsed) {
  EngineThat("from lib.gone.deep import Thing", "        pass");
  ASSERT_TRUE(StubTheFirst());
  EXPECT_THAT(Run("from lib.gone.deep import Thing; Thing()"),
              HasSubstr("the stand-in for lib.gone.deep.Thing was used"));
}

TEST_F(StubTest, AMissingNameIsThereAndRefusesToBeUsed) {
  Library("config.py", "kept = 1\n");
  EngineThat("from lib.config import Thing", "        pass");
  ASSERT_TRUE(StubTheFirst());
  EXPECT_THAT(Violations(), testing::IsEmpty());
  EXPECT_THAT(
      Run("from lib.config import kept, Thing; print(kept); Thing(1, a=2)"),
      testing::AllOf(HasSubstr("1\n"), HasSubstr("stand-in for lib.config.Thing was used")));
}

TEST_F(StubTest, KeywordsThatAreNoLongerTakenAreIgnored) {
  Library("config.py", R"(
from dataclasses import dataclass

class Outer:
    @dataclass(kw_only=True, slots=True)
    class Config:
        a: int = 0

def f(a=0):
    return a
)");
  EngineThat("from lib.config import Outer, f", "        Outer.Config(a=1, gone=2)");
  ASSERT_TRUE(StubTheFirst());
  EXPECT_EQ(Run("from lib.config import Outer; print(Outer.Config(a=1, gone=2, too=3))"),
            "Outer.Config(a=1)\n");
}

TEST_F(StubTest, NoStubIsPossibleForAMissingArgument) {
  Library("config.py", "def f(a, b):\n    pass\n");
  EngineThat("from lib.config import f", "        f(1)");
  EXPECT_FALSE(StubTheFirst());
}

}  // namespace
}  // namespace bkm
