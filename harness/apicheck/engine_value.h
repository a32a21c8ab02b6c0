// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_VALUE_H_
#define HARNESS_APICHECK_ENGINE_VALUE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/apicheck/symbol_table.h"

namespace bkm {

struct EngineClass;
struct EngineObject;
struct EngineScope;

// What an expression of the engine gives, as far as its source tells.
struct EngineValue {
  enum class Kind {
    kUnknown,
    kAsk,       // something of the library
    kText,      // a string
    kTextFrom,  // a string that starts with `text`
    kModule,    // of the engine
    kFunction,
    kClass,
    kObject,
    kSuper,
    kExternal,  // of any other package: its dotted name
  };
  Kind kind = Kind::kUnknown;
  int number = -1;  // ask or module
  std::string text;
  const FunctionDefinition* function = nullptr;
  std::shared_ptr<EngineScope> closure;  // of a function
  std::shared_ptr<EngineClass> klass;    // the class itself, or the one that a function is part of
  std::shared_ptr<EngineObject> object;  // itself, or what a function is bound to
  bool bound_to_class = false;           // the function's first parameter is `klass`
  bool is_static = false;
  bool is_class_method = false;

  bool operator==(const EngineValue& other) const {
    return kind == other.kind && number == other.number && text == other.text &&
           function == other.function && klass == other.klass && object == other.object &&
           bound_to_class == other.bound_to_class;
  }
};

// Names of a module, function or class body.
struct EngineScope {
  int module = -1;
  std::map<std::string, EngineValue> values;
  std::shared_ptr<EngineScope> around;  // of a function: where it is defined
  bool has_unknown_names = false;       // from X import * of something that is not read
};

struct EngineClass {
  int module = -1;
  const ClassDefinition* definition = nullptr;
  std::shared_ptr<EngineScope> scope;
  std::vector<EngineValue> bases;
};

struct EngineObject {
  std::shared_ptr<EngineClass> klass;
  std::map<std::string, EngineValue> attributes;
  bool escaped = false;  // code that is not read may have changed it
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_VALUE_H_
