// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/names.h"

#include "absl/strings/str_split.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

class Collector {
 public:
  explicit Collector(Names& names) : names_(names) {}

  void Walk(const Block& block, int depth) {
    for (const Statement& statement : block) Walk(statement, depth);
  }

 private:
  void Add(const std::string& name, Binding binding) { names_.bound[name].push_back(binding); }

  void AddTargets(const Expression& target) {
    std::vector<std::string> names;
    CollectTargets(target, names);
    for (const std::string& name : names) Add(name, {});
  }

  void AddNamed(const Expression& expression) {  // walrus
    if (expression.kind == EKind::kLater) return;
    if (expression.kind == EKind::kNamed) Add(expression.text, {});
    for (const Expression& part : expression.parts) AddNamed(part);
  }

  void AddImports(const Statement& statement) {
    for (size_t i = 0; i < statement.names.size(); ++i) {
      const ImportedName& imported = statement.names[i];
      if (imported.name == "*") {
        names_.stars.push_back(&statement);
        continue;
      }
      std::string name = imported.as.empty() ? imported.name : imported.as;
      if (statement.kind == SKind::kImport && imported.as.empty()) {
        name = name.substr(0, name.find('.'));
      }
      Add(name, {.statement = &statement, .name = static_cast<int>(i)});
    }
  }

  void AddAssignment(const Statement& statement) {
    for (size_t i = 1; i < statement.parts.size(); ++i) {
      const Expression& target = statement.parts[i];
      if (target.kind == EKind::kName) {
        Add(target.text, {.statement = &statement, .value = &statement.parts[0]});
      } else {
        AddTargets(target);
      }
    }
  }

  void AddAnnotated(const Statement& statement, int depth) {
    const Expression& target = statement.parts[1];
    if (target.kind != EKind::kName) return;
    if (depth == 0) {
      names_.annotated.push_back(&statement);
    } else {
      names_.has_conditional_annotations = true;
    }
    if (statement.has_value) {
      Add(target.text, {.statement = &statement, .value = &statement.parts[0]});
    } else {
      names_.declared.push_back(target.text);
    }
  }

  void Walk(const Statement& statement, int depth) {
    for (const Expression& part : statement.parts) AddNamed(part);
    switch (statement.kind) {
      case SKind::kImport:
      case SKind::kFrom:
        return AddImports(statement);
      case SKind::kAssign:
        return AddAssignment(statement);
      case SKind::kAnnotated:
        return AddAnnotated(statement, depth);
      case SKind::kDefine:
        for (const std::string& name : statement.function->globals) Add(name, {});
        return Add(statement.function->name, {.statement = &statement});
      case SKind::kClass:
        return Add(statement.klass->name, {.statement = &statement});
      case SKind::kIf:
        if (IsForTypeCheckers(statement.parts[0])) return Walk(statement.blocks[1], depth);
        break;
      case SKind::kLoop:
        AddTargets(statement.parts[1]);
        break;
      case SKind::kWith:
        for (size_t i = 1; i < statement.parts.size(); i += 2) AddTargets(statement.parts[i]);
        break;
      case SKind::kTry:
      case SKind::kMatch:
        for (const ImportedName& name : statement.names) {
          if (!name.name.empty()) Add(name.name, {});
        }
        break;
      case SKind::kDelete:
        for (const Expression& part : statement.parts) AddTargets(part);
        break;
      default:
        break;
    }
    for (const Block& block : statement.blocks) Walk(block, depth + 1);
  }

  Names& names_;
};

}  // namespace

bool IsForTypeCheckers(const Expression& test) {
  return (test.kind == EKind::kName || test.kind == EKind::kAttribute) &&
         test.text == "TYPE_CHECKING";
}

void CollectTargets(const Expression& target, std::vector<std::string>& names) {
  if (target.kind == EKind::kName) names.push_back(target.text);
  if (target.kind != EKind::kSequence) return;
  for (const Expression& part : target.parts) CollectTargets(part, names);
}

Names NamesOf(const Block& body) {
  Names names;
  Collector(names).Walk(body, 0);
  return names;
}

}  // namespace bkm
