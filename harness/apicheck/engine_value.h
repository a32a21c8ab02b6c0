// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_VALUE_H_
#define HARNESS_APICHECK_ENGINE_VALUE_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "harness/apicheck/symbol_table.h"

namespace bkm {

struct EngineClass;
struct EngineObject;
struct EngineScope;

// The value of an expression of the engine, as far as the source tells. Pointers lead into the
// walk's EngineArena and into symbol tables.
struct EngineValue {
  enum class Kind {
    kUnknown,
    kAsk,       // the answer of the library to ask `number`
    kText,      // the string `text`
    kTextFrom,  // a string that starts with `text`
    kModule,    // the engine's module `number`
    kFunction,
    kClass,
    kObject,
    kSuper,
    kExternal,  // from another package; `text` is its dotted name
  };
  Kind kind = Kind::kUnknown;
  int number = -1;
  std::string text;
  const FunctionDefinition* function = nullptr;
  EngineScope* closure = nullptr;  // where the function is defined
  EngineClass* klass = nullptr;    // the class itself, or the class of a method
  EngineObject* object = nullptr;  // the object itself, or the object that a method is bound to
  bool bound_to_class = false;     // the function's first parameter is `klass`
  bool is_static = false;
  bool is_class_method = false;

  bool operator==(const EngineValue& other) const {
    return kind == other.kind && number == other.number && text == other.text &&
           function == other.function && klass == other.klass && object == other.object &&
           bound_to_class == other.bound_to_class;
  }
};

// The names that a module, function or class body binds.
struct EngineScope {
  int module = -1;
  EngineScope* around = nullptr;  // the enclosing scope; null for a module
  std::map<std::string, EngineValue> values;
  bool has_unknown_names = false;  // a star import of a module whose source is not read

  // The value of a name that code in this scope reads; a builtin where no scope binds it.
  EngineValue LookUp(const std::string& name) const;
  // An uncertain binding beside a different one makes the value unknown.
  void Bind(const std::string& name, const EngineValue& value, bool certain);
};

struct EngineClass {
  const ClassDefinition* definition = nullptr;
  EngineScope* scope = nullptr;
  std::vector<EngineValue> bases;

  // The class's attribute; unknown where inheritance cannot be followed. `skip_itself`: as super()
  // looks it up.
  EngineValue Attribute(const std::string& name, bool skip_itself = false) const;
  // Whether `ancestor` is this class or one that it inherits from.
  bool Inherits(const EngineClass* ancestor) const;
};

struct EngineObject {
  EngineClass* klass = nullptr;
  std::map<std::string, EngineValue> attributes;
  bool escaped = false;  // code whose source is not read may have changed the object

  // The attribute, methods bound to this object.
  EngineValue Attribute(const std::string& name);
};

// Marks the value's object as escaped.
void Escape(const EngineValue& value);
void EscapeAll(const std::vector<EngineValue>& values);

// Owns the scopes, classes and objects of one walk, which refer to each other in cycles. Addresses
// stay valid as long as the arena lives.
class EngineArena {
 public:
  EngineScope* NewScope(int module, EngineScope* around = nullptr) {
    return &scopes_.emplace_back(EngineScope{.module = module, .around = around});
  }
  EngineClass* NewClass(const ClassDefinition* definition, EngineScope* scope) {
    return &classes_.emplace_back(EngineClass{.definition = definition, .scope = scope});
  }
  EngineObject* NewObject(EngineClass* klass) {
    return &objects_.emplace_back(EngineObject{.klass = klass});
  }

 private:
  std::deque<EngineScope> scopes_;
  std::deque<EngineClass> classes_;
  std::deque<EngineObject> objects_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_VALUE_H_
