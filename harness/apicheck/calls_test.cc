// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Which calls and assignments of an engine fit a library's signatures.
#include <gmock/gmock.h>

#include "harness/apicheck/checked_pair.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CallsTest : public CheckedPair {
 protected:
  // The engine's module runs `text` with `m`, which is lib.m.
  void Calls(const std::string& text) { Engine("main.py", "from lib import m\n" + text); }
};

TEST_F(CallsTest, FunctionRefusesWhatItDoesNotTake) {
  Library("m.py", "def f(a, b=1, /, c=2, *, d): pass\n");
  Calls(
      "m.f(1, d=1)\nm.f(1, 2, 3, 4, d=1)\nm.f(1, b=1, d=1)\nm.f(1)\nm.f(d=1)\nm.f(1, 2, 3, c=3, "
      "d=1)\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre("import eng/main.py:3 lib.m.f(4 by position, d=): takes 3 arguments by position, "
                  "not 4 (lib/m.py:1)",
                  "import eng/main.py:4 lib.m.f(1 by position, b=, d=): has no keyword 'b' "
                  "(lib/m.py:1)",
                  "import eng/main.py:5 lib.m.f(1 by position): requires 'd' (lib/m.py:1)",
                  "import eng/main.py:6 lib.m.f(d=): requires 'a' (lib/m.py:1)",
                  "import eng/main.py:7 lib.m.f(3 by position, c=, d=): gets 'c' twice, by "
                  "position and by keyword (lib/m.py:1)"));
}

TEST_F(CallsTest, RestParametersTakeAnything) {
  Library("m.py", "def f(*a, **k): pass\n");
  Calls("m.f(1, 2, x=3)\nm.f()\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CallsTest, SpreadArgumentsMayFillWhatIsMissing) {
  Library("m.py", "def f(a, *, b): pass\n");
  Calls("x = []\nm.f(*x, b=1)\nm.f(1, **x)\nm.f(*x)\nm.f(c=1, **x)\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:5 lib.m.f(*): requires 'b' (lib/m.py:1)",
                          "import eng/main.py:6 lib.m.f(c=, **): has no keyword 'c' (lib/m.py:1)"));
}

TEST_F(CallsTest, DecoratorsThatKeepTheSignatureAreSeenThrough) {
  Library("m.py",
          "import functools\nimport torch\n"
          "@torch.no_grad()\ndef f(a): pass\n"
          "@functools.lru_cache(maxsize=3)\ndef g(a): pass\n"
          "def mine(x): return x\n"
          "@mine\ndef h(a): pass\n");
  Calls("m.f(b=1)\nm.g(b=1)\nm.h(b=1)\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:2 lib.m.f(b=): has no keyword 'b' (lib/m.py:4)",
                          "import eng/main.py:3 lib.m.g(b=): has no keyword 'b' (lib/m.py:6)"));
}

TEST_F(CallsTest, EveryDefinitionOfAFunctionMustRefuse) {
  Library("m.py",
          "import sys\n"
          "if sys.platform:\n    def f(a): pass\nelse:\n    def f(b): pass\n");
  Calls("m.f(a=1)\nm.f(b=1)\nm.f(c=1)\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:4 lib.m.f(c=): has no keyword 'c' "
                                        "(lib/m.py:3)"));
}

TEST_F(CallsTest, OverloadsAreNotTheFunction) {
  Library("m.py",
          "from typing import overload\n"
          "@overload\ndef f(a): ...\n@overload\ndef f(b): ...\ndef f(a=1, b=2): pass\n");
  Calls("m.f(b=1)\nm.f(c=1)\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:3 lib.m.f(c=): has no keyword 'c' "
                                        "(lib/m.py:6)"));
}

TEST_F(CallsTest, ClassTakesWhatItsOwnOrInheritedConstructorTakes) {
  Library("m.py",
          "class A:\n    def __init__(self, x): pass\n"
          "class B(A): pass\n"
          "class C: pass\n");
  Calls("m.C(1)\nm.B(x=1)\nm.B(y=1)\nm.B()\nm.B(self=1)\nm.C()\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre(
          "import eng/main.py:2 lib.m.C(1 by position): takes 0 arguments by position, not 1 "
          "(lib/m.py:4)",
          "import eng/main.py:4 lib.m.B(y=): has no keyword 'y' (lib/m.py:2)",
          "import eng/main.py:5 lib.m.B(): requires 'x' (lib/m.py:2)",
          "import eng/main.py:6 lib.m.B(self=): has no keyword 'self' (lib/m.py:2)"));
}

TEST_F(CallsTest, ConstructorOfAnotherPackageIsUnknown) {
  Library("m.py",
          "import torch\nimport other\n"
          "class A(torch.nn.Module): pass\n"
          "class B(torch.nn.Module):\n    def __init__(self, x): pass\n"
          "class C(other.Base):\n    def __init__(self, x): pass\n");
  Calls("m.A(1, 2)\nm.B(y=1)\nm.C(y=1)\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:3 lib.m.B(y=): has no keyword 'y' "
                                        "(lib/m.py:5)"));
}

TEST_F(CallsTest, MetaclassesNewAndUnknownDecoratorsDecideForThemselves) {
  Library("m.py",
          "from enum import Enum\n"
          "class A(metaclass=type):\n    def __init__(self, x): pass\n"
          "class B:\n    def __new__(cls, *a): return 1\n    def __init__(self, x): pass\n"
          "class C(Enum):\n    X = 1\n"
          "def register(c): return print\n"
          "@register\nclass D:\n    def __init__(self, x): pass\n");
  Calls("m.A(y=1)\nm.B(y=1)\nm.C(1, 2, 3)\nm.D(y=1)\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CallsTest, DataclassTakesItsFieldsAndThoseOfItsBases) {
  Library("m.py",
          "import dataclasses\nfrom dataclasses import dataclass, field, KW_ONLY\n"
          "from typing import ClassVar\n"
          "@dataclass\nclass A:\n    a: int\n    b: int = 1\n    c: ClassVar[int] = 2\n"
          "@dataclasses.dataclass(kw_only=True, slots=True)\nclass B(A):\n    d: int\n"
          "    e: list = field(default_factory=list)\n    f: int = field(init=False, default=1)\n"
          "@dataclass\nclass C:\n    a: int\n    _: KW_ONLY\n    b: int\n");
  Calls(
      "m.B(1, 2, d=3, e=[])\nm.B(1, 2, 3)\nm.B(a=1)\nm.B(a=1, d=1, c=1)\nm.B(a=1, d=1, f=1)\n"
      "m.C(1, 2)\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre("import eng/main.py:3 lib.m.B(3 by position): takes 2 arguments by position, not "
                  "3 (lib/m.py:10)",
                  "import eng/main.py:4 lib.m.B(a=): requires 'd' (lib/m.py:10)",
                  "import eng/main.py:5 lib.m.B(a=, c=, d=): has no keyword 'c' (lib/m.py:10)",
                  "import eng/main.py:6 lib.m.B(a=, d=, f=): has no keyword 'f' (lib/m.py:10)",
                  "import eng/main.py:7 lib.m.C(2 by position): takes 1 arguments by position, not "
                  "2 (lib/m.py:15)"));
}

TEST_F(CallsTest, DataclassWithItsOwnConstructorTakesThat) {
  Library("m.py",
          "from dataclasses import dataclass\n"
          "@dataclass\nclass A:\n    a: int\n    def __init__(self, b): pass\n"
          "@dataclass(init=False)\nclass B:\n    a: int\n");
  Calls("m.A(b=1)\nm.A(a=1)\nm.B(a=1)\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:3 lib.m.A(a=): has no keyword 'a' (lib/m.py:5)",
                          "import eng/main.py:4 lib.m.B(a=): has no keyword 'a' (lib/m.py:7)"));
}

TEST_F(CallsTest, DataclassWhoseFieldsCannotBeReadIsUnknown) {
  Library("m.py",
          "import sys\nfrom dataclasses import dataclass\nfrom other import Base\n"
          "@dataclass\nclass A(Base):\n    a: int\n"
          "@dataclass\nclass B:\n    a: int\n    if sys.platform:\n        b: int\n"
          "flag = bool(sys.argv)\n"
          "@dataclass(kw_only=flag)\nclass C:\n    a: int\n");
  Calls("m.A(z=1)\nm.B(z=1)\nm.C(1)\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CallsTest, NestedConfigIsFoundInTheClassAndItsBases) {
  Library("m.py",
          "from dataclasses import dataclass\n"
          "class Base:\n    @dataclass(kw_only=True, slots=True)\n    class Config:\n"
          "        a: int = 1\n"
          "class Own(Base):\n    @dataclass(kw_only=True, slots=True)\n"
          "    class Config(Base.Config):\n        b: int = 1\n"
          "class Heir(Base): pass\n");
  Calls("m.Own.Config(a=1, b=1)\nm.Own.Config(c=1)\nm.Heir.Config(b=1)\nm.Own.Gone()\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre("import eng/main.py:3 lib.m.Own.Config(c=): has no keyword 'c' (lib/m.py:8)",
                  "import eng/main.py:4 lib.m.Heir.Config(b=): has no keyword 'b' (lib/m.py:4)",
                  "import eng/main.py:5 lib.m.Own.Gone: lib.m.Own has no Gone (lib/m.py:6)"));
}

TEST_F(CallsTest, NamedTupleTakesItsFields) {
  Library("m.py",
          "from typing import NamedTuple\nclass T(NamedTuple):\n    a: int\n    b: int = 1\n");
  Calls("m.T(1, b=2)\nm.T(c=1)\nm.T()\n");
  EXPECT_THAT(Violations(),
              ElementsAre("import eng/main.py:3 lib.m.T(c=): has no keyword 'c' (lib/m.py:2)",
                          "import eng/main.py:4 lib.m.T(): requires 'a' (lib/m.py:2)"));
}

TEST_F(CallsTest, MethodsFillTheirFirstParameter) {
  Library("m.py",
          "class A:\n    def f(self, x): pass\n    @staticmethod\n    def g(x): pass\n"
          "    @classmethod\n    def h(cls, x): pass\n");
  Calls("a = m.A()\na.f(1)\na.f(1, 2)\na.g(1, 2)\na.h(1, 2)\nm.A.g(1, 2)\nm.A.h(1, 2)\nm.A.f(a)\n");
  EXPECT_THAT(
      Violations(),
      ElementsAre(
          "import eng/main.py:4 lib.m.A().f(2 by position): takes 1 arguments by position, not 2 "
          "(lib/m.py:2)",
          "import eng/main.py:5 lib.m.A().g(2 by position): takes 1 arguments by position, not 2 "
          "(lib/m.py:4)",
          "import eng/main.py:6 lib.m.A().h(2 by position): takes 1 arguments by position, not 2 "
          "(lib/m.py:6)",
          "import eng/main.py:7 lib.m.A.g(2 by position): takes 1 arguments by position, not 2 "
          "(lib/m.py:4)",
          "import eng/main.py:8 lib.m.A.h(2 by position): takes 1 arguments by position, not 2 "
          "(lib/m.py:6)",
          "import eng/main.py:9 lib.m.A.f(1 by position): requires 'x' (lib/m.py:2)"));
}

TEST_F(CallsTest, ObjectHasWhatItsMethodsStoreAndOtherFilesGiveIt) {
  Library("m.py",
          "class A:\n    shared = 1\n    note: int\n    def __init__(self): self.own = 1\n"
          "    def later(self):\n        def inner(): self.deep = 1\n"
          "def attach(thing): thing.given = 1\n"
          "class B:\n    def __getattr__(self, name): return 1\n");
  Calls("a = m.A()\na.shared\na.note\na.own\na.deep\na.given\na.gone\nm.B().any\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:8 lib.m.A().gone: a lib.m.A has no "
                                        "gone (lib/m.py:1)"));
}

TEST_F(CallsTest, SlottedDataclassTakesNoOtherAttribute) {
  Library("m.py",
          "from dataclasses import dataclass\n"
          "@dataclass(slots=True)\nclass A:\n    a: int = 1\n"
          "@dataclass(slots=True)\nclass B(A):\n    b: int = 1\n"
          "@dataclass\nclass C(A): pass\n"
          "@dataclass(slots=True)\nclass D(C): pass\n");
  Calls("b = m.B()\nb.a = 1\nb.b = 1\nb.c = 1\nd = m.D()\nd.c = 1\n");
  EXPECT_THAT(Violations(), ElementsAre("import eng/main.py:5 lib.m.B().c = ...: a lib.m.B has "
                                        "slots, and none is called c (lib/m.py:6)"));
}

TEST_F(CallsTest, SlotsOfAnObjectThatTheLibraryMadeAreNotJudged) {
  Library("m.py",
          "from dataclasses import dataclass\n"
          "@dataclass(slots=True)\nclass A:\n    a: int = 1\n"
          "def make() -> A: return A()\n");
  Calls("x = m.make()\nx.gone = 1\nx.other\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CallsTest, AttributeThatTheEngineGivesIsThere) {
  Library("m.py", "def f(): pass\n");
  Calls("m.extra = 1\nm.extra\nsetattr(m, 'more', 1)\nm.more\n");
  EXPECT_THAT(Violations(), IsEmpty());
}

}  // namespace
}  // namespace bkm
