// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_SYMBOL_TABLE_H_
#define HARNESS_APICHECK_SYMBOL_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// A Python expression reduced to names, attributes and calls, in the order of evaluation.
struct Expression {
  enum class Kind {
    kNothing,    // a constant, or something without names
    kName,       // text
    kText,       // the string `text`
    kFormatted,  // an f-string; parts in order
    kAttribute,  // parts[0].text
    kCall,       // parts: callee, positional, by keyword (`names`), *starred, **spread
    kEither,     // parts[0] is evaluated, the rest may be (and, or, if-else)
    kLater,      // parts may be evaluated, in a scope with `names` (lambda, comprehension)
    kParts,      // anything else: all parts are evaluated
    kSequence,   // a tuple or list
    kNamed,      // text := parts[0]
    kOf,         // annotation parts[0][parts[1]]
    kUnion,      // annotation parts[0] | parts[1]
  };
  Kind kind = Kind::kNothing;
  int line = 0;
  std::string text;
  std::vector<Expression> parts;
  std::vector<std::string> names;
  int by_position = 0;  // number of positional arguments of a call
  bool starred = false;
  bool spread = false;
};

struct Parameter {
  enum class Kind { kByPosition = 0, kEither = 1, kRest = 2, kByName = 3, kNamedRest = 4 };
  std::string name;
  Kind kind = Kind::kEither;
  bool has_default = false;
};

// Keywords of a decorator or of field(...). Nullopt: the value is computed. "*": a spread.
using Flags = std::map<std::string, std::optional<bool>>;

struct Statement;
using Block = std::vector<Statement>;

struct FunctionDefinition {
  std::string name;
  int line = 0;
  std::vector<Parameter> parameters;
  std::vector<Expression> decorators;
  std::vector<Expression> defaults;  // only those with names
  Expression returns;
  int body = -1;                    // in SymbolTable::bodies
  std::vector<std::string> stores;  // attributes that it assigns to self or cls; "*": computed
  std::vector<std::string> globals;
  bool lazy = false;  // a generator or coroutine: calling it runs nothing
};

struct ImportedName {
  std::string name;  // "*" of a star import
  std::string as;    // empty: no `as`
};

struct ClassDefinition;
struct Statement {
  enum class Kind {
    kImport,      // names
    kFrom,        // text (module), level, names
    kAssign,      // parts: value, then targets
    kAnnotated,   // parts: value, target, annotation; has_value; field
    kExpression,  // parts[0]
    kReturn,
    kRaise,
    kIf,      // parts[0]; blocks: then, else
    kLoop,    // parts: iterable or test, target; blocks[0]
    kWith,    // parts: context, target, context, target, ...; blocks[0]
    kTry,     // blocks: body, else, finally, handlers...; names: the handlers' "as" names
    kDefine,  // function
    kClass,   // klass
    kDelete,  // parts
    kLeave,   // break, continue
    kMatch,   // parts[0]; blocks: cases; names: what patterns bind
  };
  Kind kind = Kind::kExpression;
  int line = 0;
  std::string text;
  int level = 0;
  bool has_value = false;
  std::vector<ImportedName> names;
  std::vector<Expression> parts;
  std::vector<Block> blocks;
  std::optional<Flags> field;  // keywords, if the value is a call
  std::unique_ptr<const FunctionDefinition> function;
  std::unique_ptr<const ClassDefinition> klass;
};

struct ClassDefinition {
  std::string name;
  int line = 0;
  std::vector<Expression> bases;
  std::vector<std::string> keywords;  // metaclass=..., "*"
  std::vector<Expression> decorators;
  std::vector<Flags> decorator_flags;  // one per decorator
  Block body;
  std::optional<std::vector<std::string>> slots;  // a literal __slots__; "*": computed
};

// A Python file as symbol_scan.py writes it.
struct SymbolTable {
  Block body;
  std::vector<Block> bodies;         // of functions; empty until first requested
  std::vector<std::string> imports;  // packages that it imports or names in strings; sorted
  // The names in __all__; absent without __all__, or if it is computed (`computed_exports`).
  std::optional<std::vector<std::string>> exports;
  bool computed_exports = false;
  bool dynamic = false;  // it changes its own names in ways that the scan cannot follow
  bool unread = false;   // the scan could not read it; Python may
  // Owner and name of attributes that it assigns to things from other files; "*": a computed name.
  std::vector<std::pair<Expression, std::string>> patches;
  std::optional<std::string> error;  // Python cannot parse it
  int error_line = 0;
};

// From the second column of a line of symbol_scan.py.
absl::StatusOr<SymbolTable> SymbolTableFromJson(absl::string_view table);
// From the third column.
absl::StatusOr<std::vector<Block>> BodiesFromJson(absl::string_view bodies);

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_TABLE_H_
