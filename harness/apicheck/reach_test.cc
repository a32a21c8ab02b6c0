// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// When a violation hits: what an engine's entry certainly reaches, and what it may not.
#include <gmock/gmock.h>

#include "harness/apicheck/checked_pair.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTop[] = "import lib\n";

class ReachTest : public CheckedPair {};

TEST_F(ReachTest, ConstructorAndInitializeAreCertain) {
  EngineThat(kTop,
             "        lib.a\n    def initialize(self):\n        lib.b\n    def step(self):\n       "
             " lib.c\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:5 lib.a: lib has no a (lib/__init__.py)",
                          "construct eng/main.py:7 lib.b: lib has no b (lib/__init__.py)",
                          "possible eng/main.py:9 lib.c: lib has no c (lib/__init__.py)"));
  EXPECT_EQ(Graded(), PairGrade::kConstruct);
}

TEST_F(ReachTest, BranchesLoopsAndLaterPartsOfAConditionAreNot) {
  EngineThat(kTop,
             "        if self: lib.a\n"
             "        for i in self: lib.b\n"
             "        self and lib.c\n"
             "        x = lambda: lib.d\n"
             "        [lib.e for i in self]\n"
             "        match self:\n            case 1: lib.f\n");
  EXPECT_EQ(Violations().size(), 6u);
  EXPECT_EQ(Graded(), PairGrade::kPossible);
}

TEST_F(ReachTest, WhatAnEarlierReturnMaySkipIsNotCertain) {
  EngineThat(kTop, "        if self: return\n        lib.a\n");
  EXPECT_THAT(Violations(),
              ElementsAre("possible eng/main.py:6 lib.a: lib has no a (lib/__init__.py)"));
}

TEST_F(ReachTest, WhatAnEarlierRaiseMaySkipIsCertainForThenTheCellFailed) {
  EngineThat(kTop, "        if self: raise ValueError\n        lib.a\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:6 lib.a: lib has no a (lib/__init__.py)"));
}

TEST_F(ReachTest, NothingComesAfterReturnOrRaise) {
  Engine("main.py",
         "import lib\nclass Engine:\n    def __init__(self):\n        self.f()\n        raise "
         "self\n        lib.a\n"
         "    def f(self):\n        return 1\n        lib.b\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ReachTest, WhatIsCaughtIsNotCertain) {
  EngineThat(kTop,
             "        try: lib.a\n        except AttributeError: lib.b\n"
             "        try: pass\n        finally: lib.c\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:8 lib.c: lib has no c (lib/__init__.py)",
                          "possible eng/main.py:5 lib.a: lib has no a (lib/__init__.py)",
                          "possible eng/main.py:6 lib.b: lib has no b (lib/__init__.py)"));
}

TEST_F(ReachTest, OnlyContextManagersThatAreKnownLetExceptionsPass) {
  EngineThat("import contextlib, lib, torch\n",
             "        with torch.no_grad(): lib.a\n"
             "        with contextlib.suppress(AttributeError): lib.b\n"
             "        with self.lock: lib.c\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:5 lib.a: lib has no a (lib/__init__.py)",
                          "possible eng/main.py:6 lib.b: lib has no b (lib/__init__.py)",
                          "possible eng/main.py:7 lib.c: lib has no c (lib/__init__.py)"));
}

TEST_F(ReachTest, CallsAreFollowedThroughMethodsHelpersAndSuper) {
  Engine("helpers.py", "import lib\ndef helper(x):\n    lib.a\n");
  Engine("base.py",
         "import lib\nclass Base:\n    def __init__(self):\n        self.hook()\n        lib.b\n");
  Engine("main.py",
         "from eng.base import Base\nfrom eng import helpers\nimport lib\n"
         "class Engine(Base):\n    def __init__(self):\n        super().__init__()\n"
         "        helpers.helper(1)\n    def hook(self):\n        lib.c\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/base.py:5 lib.b: lib has no b (lib/__init__.py)",
                          "construct eng/helpers.py:3 lib.a: lib has no a (lib/__init__.py)",
                          "construct eng/main.py:9 lib.c: lib has no c (lib/__init__.py)"));
}

TEST_F(ReachTest, GeneratorsAndCoroutinesRunNothingWhenCalled) {
  EngineThat(kTop,
             "        self.f()\n        self.g()\n"
             "    def f(self):\n        lib.a\n        yield 1\n"
             "    async def g(self):\n        lib.b\n");
  EXPECT_EQ(Graded(), PairGrade::kPossible);
}

TEST_F(ReachTest, ObjectsOfTheLibraryAreFollowedThroughSelf) {
  Library("__init__.py", "class T:\n    def __init__(self, config): self.parts = 1\n");
  EngineThat(kTop,
             "        self.t = lib.T(1)\n        self.t.parts\n        self.use()\n"
             "    def use(self):\n        self.t.gone\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:9 lib.T(1 by position).gone: a lib.T has "
                          "no gone (lib/__init__.py:1)"));
}

TEST_F(ReachTest, ObjectThatOtherCodeMayHaveChangedIsUnknown) {
  Library("__init__.py", "class T: pass\n");
  EngineThat("import lib, other\n",
             "        self.t = lib.T()\n        other.change(self)\n        self.t.gone\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ReachTest, ValueThatABranchMayHaveReplacedIsUnknown) {
  Library("__init__.py", "class T: pass\n");
  EngineThat(kTop,
             "        t = lib.T()\n        if self: t = None\n        t.gone\n"
             "        self.t = lib.T()\n        if self: self.replace()\n        self.t.gone\n"
             "    def replace(self):\n        self.t = None\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ReachTest, ModuleWithAComputedNameFailsOnlyWhenAllCandidatesDo) {
  Library("models/__init__.py", "");
  Library("models/a.py", "def build(x): pass\n");
  Library("models/b.py", "def build(x, backend): pass\ndef only_b(): pass\n");
  EngineThat("import importlib\n",
             "        m = importlib.import_module(f'lib.models.{self.name}')\n"
             "        m.build(1, backend=2)\n        m.only_b()\n        m.build(1, other=2)\n"
             "        m.gone\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre(
          "construct eng/main.py:8 lib.models.*.build(1 by position, other=): has no keyword "
          "'other' (lib/models/a.py:1)",
          "construct eng/main.py:9 lib.models.*.gone: lib.models.a has no gone "
          "(lib/models/a.py)"));
}

TEST_F(ReachTest, ModuleImportedByItsNameAsTextIsFollowed) {
  EngineThat("import importlib\n", "        importlib.import_module('lib.gone')\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:5 lib.gone: there is no module lib.gone"));
}

TEST_F(ReachTest, BasesOfClassesAreAskedAtImport) {
  Library("__init__.py", "class T: pass\n");
  Engine("main.py",
         "import lib\nclass X(lib.T):\n    class Config(lib.T.Config): pass\nclass Engine: pass\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:3 lib.T.Config: lib.T has no Config "
                                        "(lib/__init__.py:1)"));
}

TEST_F(ReachTest, EngineBehindARegistrysDecoratorIsFollowed) {
  Engine(
      "main.py",
      "import lib\n"
      "class Registry:\n    known = {}\n    @classmethod\n    def register(cls, name):\n"
      "        def decorator(engine):\n            if name not in cls.known: cls.known[name] = "
      "engine\n"
      "            return engine\n        return decorator\n"
      "@Registry.register('x')\nclass Engine:\n    def __init__(self, config):\n        lib.a\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:13 lib.a: lib has no a (lib/__init__.py)"));
}

TEST_F(ReachTest, EngineBehindAnUnknownDecoratorIsNotJudged) {
  Engine("main.py",
         "import lib, other\n@other.wrap\nclass Engine:\n    def __init__(self):\n        lib.a\n");
  EXPECT_EQ(Graded(), PairGrade::kUnknown);
}

TEST_F(ReachTest, AskingWhetherSomethingIsThereAsksNothing) {
  EngineThat(
      kTop,
      "        hasattr(lib, 'a')\n        getattr(lib, 'a', None)\n        getattr(lib, 'b')\n");
  EXPECT_THAT(Violations(),
              ElementsAre("construct eng/main.py:7 lib.b: lib has no b (lib/__init__.py)"));
}

}  // namespace
}  // namespace bkm
