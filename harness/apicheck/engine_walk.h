// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_WALK_H_
#define HARNESS_APICHECK_ENGINE_WALK_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/apicheck/engine_value.h"
#include "harness/apicheck/requirement.h"
#include "harness/apicheck/source_tree.h"
#include "harness/apicheck/symbol_tables.h"

namespace bkm {

// Where a walk through an engine starts: data of the engine kind.
struct EngineEntry {
  std::vector<std::string> modules;  // imported in this order; the last one has the class
  std::string klass;                 // made and then initialised; empty: nothing is made
  std::vector<std::string> methods;  // called on the object, in this order
};

// Follows an engine from its entry through its own imports and calls, as Python would run it, and
// collects what it asks of the library. What it cannot follow it takes to be anything. Whether
// code is certainly reached is decided with care: only such code can make a pair red.
class EngineWalk {
 public:
  EngineWalk(SymbolTables& tables, const SourceTree& tree, std::string library, Asks& asks)
      : tables_(tables), tree_(tree), library_(std::move(library)), asks_(asks) {}

  void Run(const EngineEntry& entry);

  // Sorted; of one place and ask the gravest grade.
  std::vector<Requirement> Requirements() const;
  // Modules that were looked for, with what lay there: as long as these are the same, so is the
  // result.
  const std::map<int, int>& reads() const { return reads_; }
  // Whether the entry's class was found and followed.
  bool followed() const { return followed_; }
  // The first module of the entry that the engine itself does not have; empty: it has all.
  const std::string& missing_entry() const { return missing_entry_; }

 private:
  using Value = EngineValue;
  using Kind = EngineValue::Kind;
  // How a block may end, as bits.
  static constexpr int kGoesOn = 1, kRaises = 2, kReturns = 4, kBreaks = 8;

  struct Frame {
    std::shared_ptr<EngineScope> scope;
    int module = -1;
    bool certain = true;  // this statement runs, or the cell has failed before
    int depth = 0;
    std::shared_ptr<EngineClass> klass;    // the method's class, for super()
    std::shared_ptr<EngineObject> object;  // the method's self
    std::vector<Value> returned;
  };

  // engine_walk.cc: modules and statements
  void ImportModule(int module, bool certain);
  int WalkBlock(const Block& block, Frame& frame);
  int WalkStatement(const Statement& statement, Frame& frame);
  int WalkIf(const Statement& statement, Frame& frame);
  int WalkTry(const Statement& statement, Frame& frame);
  int WalkWith(const Statement& statement, Frame& frame);
  int WalkUncertain(const Block& block, Frame& frame);
  void WalkImport(const Statement& statement, Frame& frame);
  void WalkFrom(const Statement& statement, Frame& frame);
  void ImportFromEngine(const std::string& target, const Statement& statement, Frame& frame);
  void DefineFunction(const Statement& statement, Frame& frame);
  void DefineClass(const Statement& statement, Frame& frame);
  void Assign(const Expression& target, const Value& value, Frame& frame);
  void Bind(const std::string& name, const Value& value, Frame& frame);
  void WalkEverything();  // what no call reached: only possible
  void WalkFunctionsIn(const Block& block, Frame& frame, const std::shared_ptr<EngineClass>& klass);
  // Whether the entry's object has methods of this class.
  bool IsOfEntry(const std::shared_ptr<EngineClass>& klass) const;

  // engine_evaluation.cc: expressions and calls
  Value Evaluate(const Expression& expression, Frame& frame);
  void EvaluateAll(const std::vector<Expression>& expressions, Frame& frame);
  Value Name(const std::string& name, const Frame& frame);
  Value AttributeOf(const Value& value, const std::string& name, int line, Frame& frame);
  Value ObjectAttribute(const std::shared_ptr<EngineObject>& object, const std::string& name);
  Value ClassAttribute(const std::shared_ptr<EngineClass>& klass, const std::string& name,
                       bool skip_itself = false);
  Value EvaluateCall(const Expression& call, Frame& frame);
  Value CallValue(const Value& callee, const Expression* call, const std::vector<Value>& arguments,
                  int line, Frame& frame);
  Value CallFunction(const Value& callee, const Expression* call,
                     const std::vector<Value>& arguments, Frame& frame);
  Value CallExternal(const Value& callee, const Expression* call,
                     const std::vector<Value>& arguments, int line, Frame& frame);
  Value MakeObject(const Value& klass, const Expression* call, const std::vector<Value>& arguments,
                   int line, Frame& frame);
  Value ImportByText(const Value& text, int line, Frame& frame);
  Value Need(Ask ask, int line, const Frame& frame);
  static void Escape(const Value& value);
  bool IsLibrary(const std::string& dotted) const;
  bool IsEngine(const std::string& dotted) const;
  int FileOf(int module);

  SymbolTables& tables_;
  const SourceTree& tree_;
  const std::string library_;
  Asks& asks_;
  Grade phase_ = Grade::kImport;
  bool inlining_ = true;
  int calls_ = 0;
  std::map<int, std::shared_ptr<EngineScope>> modules_;
  std::set<int> certain_;  // modules that are certainly imported
  std::set<int> importing_;
  std::set<const FunctionDefinition*> running_;
  std::map<int, int> reads_;
  std::set<std::string> stored_;  // attributes that the engine gives to the library's objects
  std::map<std::pair<int, std::pair<int, int>>, Grade> needs_;  // (ask, (module, line))
  std::shared_ptr<EngineObject> entry_object_;
  bool followed_ = false;
  std::string missing_entry_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_WALK_H_
