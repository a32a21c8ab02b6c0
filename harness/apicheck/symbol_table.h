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

// What is left of a Python expression: names, attributes, calls, and in which order they are
// evaluated.
struct Expression {
  enum class Kind {
    kNothing,    // a constant, or something without names
    kName,       // text
    kText,       // the string `text`
    kFormatted,  // an f-string; parts in order
    kAttribute,  // parts[0].text
    kCall,    // parts: callee, by position, by keyword (`names`), *starred, **spread, in this order
    kEither,  // parts[0] always, the rest perhaps (and, or, if-else)
    kLater,   // parts[...] perhaps, and not now, with `names` as parameters (lambda, comprehension)
    kParts,   // anything else: all parts
    kSequence,  // a tuple or list
    kNamed,     // text := parts[0]
    kOf,        // annotation parts[0][parts[1]]
    kUnion,     // annotation parts[0] | parts[1]
  };
  Kind kind = Kind::kNothing;
  int line = 0;
  std::string text;
  std::vector<Expression> parts;
  std::vector<std::string> names;
  int by_position = 0;  // of a call
  bool starred = false;
  bool spread = false;
};

struct Parameter {
  enum class Kind { kByPosition = 0, kEither = 1, kRest = 2, kByName = 3, kNamedRest = 4 };
  std::string name;
  Kind kind = Kind::kEither;
  bool has_default = false;
};

// Keywords of a decorator or of field(...): nullopt where the value is computed; "*" for a spread.
using Flags = std::map<std::string, std::optional<bool>>;

struct Statement;
using Block = std::vector<Statement>;

struct FunctionDefinition {
  std::string name;
  int line = 0;
  std::vector<Parameter> parameters;
  std::vector<Expression> decorators;
  std::vector<Expression> defaults;  // those that name something
  Expression returns;
  int body = -1;                    // in SymbolTable::bodies
  std::vector<std::string> stores;  // attributes that it gives to self or cls; "*": a computed one
  std::vector<std::string> globals;
  bool lazy = false;  // a generator or coroutine: calling it runs nothing
};

struct ImportedName {
  std::string name;  // "*" of a star import
  std::string as;    // empty: as it is
};

// A class body, or a statement that is not a definition.
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
  std::optional<Flags> field;  // the value is a call with these keywords
  std::unique_ptr<const FunctionDefinition> function;
  std::unique_ptr<const ClassDefinition> klass;
};

struct ClassDefinition {
  std::string name;
  int line = 0;
  std::vector<Expression> bases;
  std::vector<std::string> keywords;  // metaclass=..., "*"
  std::vector<Expression> decorators;
  std::vector<Flags> decorator_flags;  // one for each
  Block body;
  std::optional<std::vector<std::string>> slots;  // a literal __slots__; "*": computed
};

// A Python file as symbol_scan.py writes it.
struct SymbolTable {
  Block body;
  std::vector<Block> bodies;         // of functions; empty unless they were asked for
  std::vector<std::string> imports;  // packages that it imports from, or names in texts; sorted
  // What __all__ lists; absent: there is none, or it is computed (`computed_exports`).
  std::optional<std::vector<std::string>> exports;
  bool computed_exports = false;
  bool dynamic = false;  // it writes its own names in ways that cannot be read
  bool unread = false;   // it cannot be read by us: says nothing about Python
  // Attributes that it gives to what it got from other files; the name "*" is a computed one.
  std::vector<std::pair<Expression, std::string>> patches;
  std::optional<std::string> error;  // Python cannot parse it
  int error_line = 0;
};

// Of one line of symbol_scan.py: its second column.
absl::StatusOr<SymbolTable> SymbolTableFromJson(absl::string_view table);
// Its third one.
absl::StatusOr<std::vector<Block>> BodiesFromJson(absl::string_view bodies);

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_TABLE_H_
