// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Which imports of an engine a library satisfies.
#include <gmock/gmock.h>

#include "harness/apicheck/checked_pair.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ImportsTest : public CheckedPair {};

TEST_F(ImportsTest, ModuleThatIsNotThereIsRedAtImport) {
  Library("a.py", "x = 1\n");
  Engine("main.py", "import lib.a\nfrom lib.b import x\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:2 lib.b: there is no module lib.b"));
}

TEST_F(ImportsTest, EngineWithoutItsEntryIsRedAtImport) {
  EXPECT_THAT(Violations(),
              ElementsAre("import :0 eng.main: the engine itself has no such module"));
  EXPECT_EQ(Graded(), PairGrade::kImport);
}

TEST_F(ImportsTest, NameThatIsNotThereIsRedAndSaysWhereItIs) {
  Library("a.py", "def here(): pass\n");
  Library("b.py", "def moved(): pass\n");
  Engine("main.py", "from lib.a import here, moved\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:1 lib.a.moved: lib.a has no moved; "
                                        "moved is in lib.b (lib/a.py)"));
}

TEST_F(ImportsTest, OnlyTheCauseIsToldNotWhatFollowsFromIt) {
  Engine("main.py", "from lib.b import x\nx.y.z(1)\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:1 lib.b: there is no module lib.b"));
}

TEST_F(ImportsTest, ReexportsAreFollowed) {
  Library("__init__.py", "from .inner import f as g\nfrom lib.inner import *\n");
  Library("inner.py", "def f(): pass\ndef h(): pass\ndef _p(): pass\n");
  Engine("main.py", "from lib import g, h, _p\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:1 lib._p: lib has no _p; _p is in lib.inner "
                          "(lib/__init__.py)"));
}

TEST_F(ImportsTest, StarImportGivesWhatAllLists) {
  Library("__init__.py", "from .inner import *\n");
  Library("inner.py", "__all__ = ['f']\ndef f(): pass\ndef h(): pass\n");
  Engine("main.py", "from lib import f, h\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:1 lib.h: lib has no h; h is in "
                                        "lib.inner (lib/__init__.py)"));
}

TEST_F(ImportsTest, StarImportOfAComputedListOrAnotherPackageIsUnknown) {
  Library("a.py", "from .inner import *\n");
  Library("inner.py", "__all__ = [n for n in dir()]\n");
  Library("b.py", "from numpy import *\n");
  Engine("main.py", "from lib.a import f\nfrom lib.b import g\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, ConditionalDefinitionsExist) {
  Library("a.py",
          "import sys\n"
          "if sys.platform == 'linux':\n    def f(): pass\n"
          "try:\n    import fast as g\nexcept ImportError:\n    g = None\n"
          "with open('x') as h: pass\n"
          "for i in range(3): j = i\n");
  Engine("main.py", "from lib.a import f, g, h, i, j\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, NamesForTypeCheckersAreNotThere) {
  Library("a.py",
          "from typing import TYPE_CHECKING\n"
          "if TYPE_CHECKING:\n    from lib.b import T\nelse:\n    U = None\n");
  Library("b.py", "class T: pass\n");
  Engine("main.py", "from lib.a import U\nfrom lib.a import T\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:2 lib.a.T: lib.a has no T; T is in "
                                        "lib.b (lib/a.py)"));
}

TEST_F(ImportsTest, ImportsForTypeCheckersAskNothing) {
  Engine("main.py",
         "import typing\nfrom typing import TYPE_CHECKING\n"
         "if TYPE_CHECKING:\n    from lib.gone import a\n"
         "if typing.TYPE_CHECKING:\n    import lib.gone\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, GuardedImportsAreOnlyPossible) {
  Engine("main.py",
         "try:\n    from lib.gone import a\nexcept ImportError:\n    a = None\n"
         "try:\n    import lib.gone\nfinally:\n    pass\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:6 lib.gone: there is no module lib.gone",
                          "possible eng/main.py:2 lib.gone: there is no module lib.gone"));
}

TEST_F(ImportsTest, LazyModulesMayHaveAnything) {
  Library("a.py", "def __getattr__(name): return name\n");
  Library("b.py", "import sys\nsys.modules[__name__] = object()\n");
  Library("c.py", "globals()['x'] = 1\n");
  Engine("main.py", "from lib.a import p\nfrom lib.b import q\nfrom lib.c import x\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, FolderWithoutInitIsAPackage) {
  Library("space/inner.py", "x = 1\n");
  Engine("main.py",
         "from lib.space.inner import x\nfrom lib.space import inner\nimport lib.space.gone\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:3 lib.space.gone: there is no module "
                                        "lib.space.gone"));
}

TEST_F(ImportsTest, ExtensionModuleIsNotJudged) {
  Library("fast.cpython-311-x86_64-linux-gnu.so", "\x7f");
  Engine("main.py", "from lib.fast import anything\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, WhatTheLibraryItselfCannotImportIsRed) {
  Library("a.py", "from lib.b import gone\n");
  Library("b.py", "import os\n");
  Engine("main.py", "import lib.a\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:1 lib.a: lib.b has no gone "
                                        "(lib/a.py:1)"));
}

TEST_F(ImportsTest, LibraryFileThatPythonCannotParseIsRed) {
  Library("a.py", "x = 1\ndef f(:\n");
  Engine("main.py", "import lib.a\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:1 lib.a: Python cannot parse it: "
                                        "invalid syntax (lib/a.py:2)"));
}

TEST_F(ImportsTest, ImportsInACircleAreFine) {
  Library("a.py", "from lib.b import y\nx = 1\n");
  Library("b.py", "from lib.a import x\ny = 1\n");
  Engine("main.py", "from lib.a import x\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, NameThatAnotherFilePatchesInExists) {
  Library("a.py", "x = 1\n");
  Library("b.py", "import lib.a\nlib.a.y = 2\n");
  Engine("main.py", "from lib.a import y\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ImportsTest, TheEnginesOwnImportsAreFollowed) {
  Library("a.py", "x = 1\n");
  Engine("deep/__init__.py", "from ..other import y\n");
  Engine("deep/leaf.py", "from . import twig\n");
  Engine("deep/twig.py", "from lib.a import gone\n");
  Engine("other.py", "y = 1\n");
  Engine("main.py", "import eng.deep.leaf\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/deep/twig.py:1 lib.a.gone: lib.a has no gone (lib/a.py)"));
}

TEST_F(ImportsTest, ImportThatIsGuardedInOnePlaceAndNotInAnotherIsRed) {
  Engine("__init__.py", "try:\n    from .part import x\nexcept ImportError:\n    x = None\n");
  Engine("part.py", "from lib.gone import x\n");
  Engine("main.py", "from eng.part import x\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/part.py:1 lib.gone: there is no module "
                                        "lib.gone"));
}

}  // namespace
}  // namespace bkm
