// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/library_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using testing::ElementsAre;

TEST(LibraryUseTest, OnePlaceKeepsTheGravestGradeOfAnAsk) {
  Asks asks;
  LibraryUse use("lib", asks);
  const Ask ask{.kind = Ask::Kind::kModule, .name = "lib.a"};
  use.Need(ask, 3, {.module = 7, .certain = false});
  use.Need(ask, 3, {.module = 7, .certain = true});
  use.SetPhase(Grade::kConstruct);
  use.Need(ask, 3, {.module = 7, .certain = true});
  use.Need(ask, 4, {.module = 7, .certain = true});

  EXPECT_THAT(
      use.Requirements(),
      ElementsAre(Requirement{.ask = 0, .grade = Grade::kImport, .module = 7, .line = 3},
                  Requirement{.ask = 0, .grade = Grade::kConstruct, .module = 7, .line = 4}));
}

TEST(LibraryUseTest, ModuleWithoutNeedIsNoRequirement) {
  Asks asks;
  LibraryUse use("lib", asks);

  EXPECT_EQ(use.Module("lib").kind, EngineValue::Kind::kAsk);
  EXPECT_THAT(use.Requirements(), ElementsAre());
}

}  // namespace
}  // namespace bkm
