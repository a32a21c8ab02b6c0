// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_value.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

EngineValue Text(const std::string& text) { return {.kind = Kind::kText, .text = text}; }

TEST(EngineScopeTest, UncertainBindingOfAnotherValueLeavesTheNameUnknown) {
  EngineArena arena;
  EngineScope& scope = *arena.NewScope(0);
  scope.Bind("same", Text("a"), /*certain=*/true);
  scope.Bind("same", Text("a"), /*certain=*/false);
  scope.Bind("other", Text("a"), /*certain=*/true);
  scope.Bind("other", Text("b"), /*certain=*/false);
  scope.Bind("replaced", Text("a"), /*certain=*/true);
  scope.Bind("replaced", Text("b"), /*certain=*/true);

  EXPECT_EQ(scope.LookUp("same"), Text("a"));
  EXPECT_EQ(scope.LookUp("other"), EngineValue());
  EXPECT_EQ(scope.LookUp("replaced"), Text("b"));
}

TEST(EngineScopeTest, UnboundNameIsABuiltinUnlessAStarImportHidesIt) {
  EngineArena arena;
  EngineScope& module = *arena.NewScope(0);
  EngineScope& function = *arena.NewScope(0, &module);
  module.Bind("outer", Text("a"), /*certain=*/true);

  EXPECT_EQ(function.LookUp("outer"), Text("a"));
  EXPECT_EQ(function.LookUp("len").text, "builtins.len");
  module.has_unknown_names = true;
  EXPECT_EQ(function.LookUp("len"), EngineValue());
}

TEST(EngineClassTest, AttributeComesFromTheOnlyBaseAndIsUnknownWithTwo) {
  EngineArena arena;
  const ClassDefinition definition;
  EngineClass& base = *arena.NewClass(&definition, arena.NewScope(0));
  EngineClass& other = *arena.NewClass(&definition, arena.NewScope(0));
  EngineClass& child = *arena.NewClass(&definition, arena.NewScope(0));
  base.scope->Bind("name", Text("a"), /*certain=*/true);

  child.bases = {{.kind = Kind::kClass, .klass = &base}};
  EXPECT_EQ(child.Attribute("name"), Text("a"));
  EXPECT_TRUE(child.Inherits(&base));
  child.bases.push_back({.kind = Kind::kClass, .klass = &other});
  EXPECT_EQ(child.Attribute("name"), EngineValue());
  EXPECT_TRUE(child.Inherits(&other));
}

TEST(EngineObjectTest, EscapedObjectHasNoKnownAttributes) {
  EngineArena arena;
  const ClassDefinition definition;
  EngineObject& object = *arena.NewObject(arena.NewClass(&definition, arena.NewScope(0)));
  object.attributes["name"] = Text("a");
  EXPECT_EQ(object.Attribute("name"), Text("a"));

  Escape({.kind = Kind::kObject, .object = &object});

  EXPECT_EQ(object.Attribute("name"), EngineValue());
}

// A method's closure is the module's scope, which holds the method again.
TEST(EngineArenaTest, OwnsScopesThatReferToEachOtherInACircle) {
  EngineArena arena;
  EngineScope& module = *arena.NewScope(0);
  const FunctionDefinition function;
  module.Bind("f", {.kind = Kind::kFunction, .function = &function, .closure = &module}, true);

  EXPECT_EQ(module.LookUp("f").closure, &module);
}

}  // namespace
}  // namespace bkm
