// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_table.h"

#include "harness/base/json.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

Block ReadBlock(const Json& json);

// `line` is the statement's; an expression has its own line in the JSON only if it differs.
Expression ReadExpression(const Json& json, int line);

std::vector<Expression> ReadExpressions(const Json& json, int line) {
  std::vector<Expression> expressions;
  for (const Json& item : json) expressions.push_back(ReadExpression(item, line));
  return expressions;
}

Expression ReadCall(const Json& json, int line) {
  Expression call{.kind = EKind::kCall, .line = json.size() > 6 ? json[6].get<int>() : line};
  call.parts.push_back(ReadExpression(json[1], line));
  for (const Json& item : json[2]) call.parts.push_back(ReadExpression(item, line));
  call.by_position = static_cast<int>(json[2].size());
  for (const Json& item : json[3]) {
    call.names.push_back(item[0].get<std::string>());
    call.parts.push_back(ReadExpression(item[1], line));
  }
  for (int rest : {4, 5}) {
    for (const Json& item : json[rest]) call.parts.push_back(ReadExpression(item, line));
  }
  call.starred = !json[4].empty();
  call.spread = !json[5].empty();
  return call;
}

Expression ReadExpression(const Json& json, int line) {
  if (json.is_null()) return {};
  if (json.is_string()) {
    return {.kind = EKind::kName, .line = line, .text = json.get<std::string>()};
  }
  Expression made{.line = line};
  switch (json[0].get_ref<const std::string&>()[0]) {
    case 's':
      made.kind = EKind::kText;
      made.text = json[1].get<std::string>();
      break;
    case 'f':
      made.kind = EKind::kFormatted;
      made.parts = ReadExpressions(json[1], line);
      break;
    case 'a':
      made.kind = EKind::kAttribute;
      made.parts.push_back(ReadExpression(json[1], line));
      made.text = json[2].get<std::string>();
      if (json.size() > 3) made.line = json[3].get<int>();
      break;
    case 'c':
      return ReadCall(json, line);
    case 'o':
      made.kind = EKind::kEither;
      made.parts = ReadExpressions(json[2], line);
      made.parts.insert(made.parts.begin(), ReadExpression(json[1], line));
      break;
    case 'l':
      made.kind = EKind::kLater;
      made.names = json[1].get<std::vector<std::string>>();
      made.parts = ReadExpressions(json[2], line);
      break;
    case 't':
      made.kind = EKind::kSequence;
      made.parts = ReadExpressions(json[1], line);
      break;
    case 'w':
      made.kind = EKind::kNamed;
      made.text = json[1].get<std::string>();
      made.parts.push_back(ReadExpression(json[2], line));
      break;
    case '[':
    case '|':
      made.kind = json[0] == "[" ? EKind::kOf : EKind::kUnion;
      made.parts = {ReadExpression(json[1], line), ReadExpression(json[2], line)};
      break;
    default:
      made.kind = EKind::kParts;
      made.parts = ReadExpressions(json[1], line);
  }
  return made;
}

Flags ReadFlags(const Json& json) {
  Flags flags;
  for (const auto& [name, value] : json.items()) {
    flags[name] = value.is_boolean() ? std::optional<bool>(value.get<bool>()) : std::nullopt;
  }
  return flags;
}

std::vector<ImportedName> ReadNames(const Json& json) {
  std::vector<ImportedName> names;
  for (const Json& item : json) {
    names.push_back({item[0].get<std::string>(), item[1].is_null() ? "" : item[1]});
  }
  return names;
}

std::unique_ptr<const FunctionDefinition> ReadFunction(const Json& json, int line) {
  auto function = std::make_unique<FunctionDefinition>();
  function->line = line;
  function->name = json[2].get<std::string>();
  for (const Json& item : json[3]) {
    function->parameters.push_back({item[0].get<std::string>(),
                                    static_cast<Parameter::Kind>(item[1].get<int>()),
                                    item[2].get<bool>()});
  }
  function->decorators = ReadExpressions(json[4], line);
  function->defaults = ReadExpressions(json[5], line);
  function->returns = ReadExpression(json[6], line);
  function->body = json[7].get<int>();
  function->stores = json[8].get<std::vector<std::string>>();
  function->globals = json[9].get<std::vector<std::string>>();
  function->lazy = json[10].get<bool>();
  return function;
}

std::unique_ptr<const ClassDefinition> ReadClass(const Json& json, int line) {
  auto klass = std::make_unique<ClassDefinition>();
  klass->line = line;
  klass->name = json[2].get<std::string>();
  klass->bases = ReadExpressions(json[3], line);
  klass->keywords = json[4].get<std::vector<std::string>>();
  klass->decorators = ReadExpressions(json[5], line);
  for (const Json& flags : json[6]) klass->decorator_flags.push_back(ReadFlags(flags));
  klass->body = ReadBlock(json[7]);
  if (!json[8].is_null()) klass->slots = json[8].get<std::vector<std::string>>();
  return klass;
}

void ReadTry(const Json& json, Statement& made) {
  made.kind = SKind::kTry;
  made.blocks.push_back(ReadBlock(json[2]));
  made.blocks.push_back(ReadBlock(json[4]));
  made.blocks.push_back(ReadBlock(json[5]));
  for (const Json& handler : json[3]) {
    made.names.push_back({handler[0].is_null() ? "" : handler[0].get<std::string>(), ""});
    made.blocks.push_back(ReadBlock(handler[1]));
  }
}

// The kinds that hold only expressions or names.
void ReadSimple(char tag, const Json& json, Statement& made) {
  const auto expression = [&](const Json& item) { return ReadExpression(item, made.line); };
  switch (tag) {
    case 'I':
      made.kind = SKind::kImport;
      made.names = ReadNames(json[2]);
      break;
    case 'F':
      made.kind = SKind::kFrom;
      made.text = json[2].get<std::string>();
      made.level = json[3].get<int>();
      made.names = ReadNames(json[4]);
      break;
    case 'A':
      made.kind = SKind::kAssign;
      made.parts = ReadExpressions(json[2], made.line);
      made.parts.insert(made.parts.begin(), expression(json[3]));
      break;
    case 'N':
      made.kind = SKind::kAnnotated;
      made.parts = {expression(json[5]), expression(json[2]), expression(json[3])};
      made.has_value = json[4].get<bool>();
      if (json.size() > 6 && !json[6].is_null()) made.field = ReadFlags(json[6]);
      break;
    case 'R':
    case 'Z':
    case 'X':
      made.kind = tag == 'R' ? SKind::kReturn : tag == 'Z' ? SKind::kRaise : SKind::kExpression;
      made.parts = {expression(json[2])};
      break;
    case '-':
      made.kind = SKind::kDelete;
      made.parts = ReadExpressions(json[2], made.line);
      break;
    default:
      made.kind = SKind::kLeave;
  }
}

Statement ReadStatement(const Json& json) {
  Statement made{.line = json[1].get<int>()};
  const auto expression = [&](const Json& item) { return ReadExpression(item, made.line); };
  const char tag = json[0].get_ref<const std::string&>()[0];
  switch (tag) {
    case '?':
      made.kind = SKind::kIf;
      made.parts = {expression(json[2])};
      made.blocks.push_back(ReadBlock(json[3]));
      made.blocks.push_back(ReadBlock(json[4]));
      break;
    case 'L':
      made.kind = SKind::kLoop;
      made.parts = {expression(json[3]), expression(json[2])};
      made.blocks.push_back(ReadBlock(json[4]));
      break;
    case 'W':
      made.kind = SKind::kWith;
      for (const Json& item : json[2]) {
        made.parts.push_back(expression(item[0]));
        made.parts.push_back(expression(item[1]));
      }
      made.blocks.push_back(ReadBlock(json[3]));
      break;
    case 'Y':
      ReadTry(json, made);
      break;
    case 'D':
      made.kind = SKind::kDefine;
      made.function = ReadFunction(json, made.line);
      break;
    case 'C':
      made.kind = SKind::kClass;
      made.klass = ReadClass(json, made.line);
      break;
    case 'H':
      made.kind = SKind::kMatch;
      made.parts = {expression(json[2])};
      for (const Json& name : json[3]) made.names.push_back({name.get<std::string>(), ""});
      for (const Json& block : json[4]) made.blocks.push_back(ReadBlock(block));
      break;
    default:
      ReadSimple(tag, json, made);
  }
  return made;
}

Block ReadBlock(const Json& json) {
  Block block;
  block.reserve(json.size());
  for (const Json& item : json) block.push_back(ReadStatement(item));
  return block;
}

}  // namespace

absl::StatusOr<SymbolTable> SymbolTableFromJson(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, "symbol table"));
  SymbolTable table;
  table.unread = IsTrue(json, "unread");
  if (json.contains("error")) {
    table.error = json["error"].get<std::string>();
    table.error_line = static_cast<int>(WholeOf(json, "line").value_or(0));
  }
  if (json.contains("body")) table.body = ReadBlock(json["body"]);
  if (json.contains("imports")) table.imports = json["imports"].get<std::vector<std::string>>();
  if (json.contains("all")) {
    if (json["all"].is_array()) table.exports = json["all"].get<std::vector<std::string>>();
    table.computed_exports = !json["all"].is_array();
  }
  table.dynamic = IsTrue(json, "dynamic");
  if (json.contains("patches")) {
    for (const Json& item : json["patches"]) {
      table.patches.emplace_back(ReadExpression(item[0], 0), item[1].get<std::string>());
    }
  }
  return table;
}

absl::StatusOr<std::vector<Block>> BodiesFromJson(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, "symbol table"));
  std::vector<Block> bodies;
  for (const Json& item : json) bodies.push_back(ReadBlock(item));
  return bodies;
}

}  // namespace bkm
