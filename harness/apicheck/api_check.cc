// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/api_check.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// How many of the latest walks are compared with a new engine tree.
constexpr size_t kRecentWalks = 4;
constexpr size_t kMostHints = 3;

void Set(std::vector<uint64_t>& bits, int place) {
  if (bits.size() <= static_cast<size_t>(place) / 64) bits.resize(place / 64 + 1);
  bits[place / 64] |= uint64_t{1} << (place % 64);
}

bool Meet(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] & b[i]) return true;
  }
  return false;
}

// A hint: the modules that define the missing name now.
std::string Elsewhere(Library& library, const Ask& ask, const Failure& failure) {
  if (failure.reason != "missing-name" || ask.name.empty()) return "";
  std::vector<std::string> modules = library.Definers(ask.name);
  if (modules.empty() || modules.size() > kMostHints) return "";
  return absl::StrCat("; ", ask.name, " is in ", absl::StrJoin(modules, ", "));
}

}  // namespace

absl::string_view Name(PairGrade grade) {
  switch (grade) {
    case PairGrade::kUnknown:
      return "unknown";
    case PairGrade::kNothing:
      return "nothing-found";
    case PairGrade::kPossible:
      return "possible";
    case PairGrade::kConstruct:
      return "construct";
    case PairGrade::kImport:
      return "import";
  }
  return "";
}

std::string ToText(const Violation& violation) {
  const std::string place = violation.engine_file.empty()
                                ? "its entry"
                                : absl::StrCat(violation.engine_file, ":", violation.engine_line);
  return absl::StrCat(place, " asks ", violation.asked, ": ", violation.problem,
                      violation.where.empty() ? "" : absl::StrCat(" (", violation.where, ")"));
}

Json ToJson(const Violation& violation) {
  return {{"grade", std::string(Name(violation.grade))},
          {"reason", violation.reason},
          {"engine_file", violation.engine_file},
          {"engine_line", violation.engine_line},
          {"asked", violation.asked},
          {"problem", violation.problem},
          {"where", violation.where}};
}

const ApiCheck::Walked& ApiCheck::Walk(const Tree& engine) {
  const Walked*& walked = walk_of_[engine->id];
  if (walked) return *walked;
  const auto same = [&](const auto& read) { return engine->File(read.first) == read.second; };
  const size_t oldest = walks_.size() - std::min(walks_.size(), kRecentWalks);
  for (size_t i = walks_.size(); i-- > oldest;) {
    const std::map<int, int>& reads = walks_[i].reads;
    if (!std::all_of(reads.begin(), reads.end(), same)) continue;
    walked = &walks_[i];
    return *walked;
  }
  EngineWalk walk(tables_, *engine, library_, asks_);
  walk.Run(entry_);
  Walked& fresh = walks_.emplace_back(Walked{.missing_entry = walk.missing_entry(),
                                             .requirements = walk.Requirements(),
                                             .reads = walk.reads()});
  fresh.demand = DemandOf(fresh, walk.followed() || entry_.klass.empty());
  walked = &fresh;
  return fresh;
}

int ApiCheck::DemandOf(const Walked& walked, bool followed) {
  Demand demand{.followed = followed, .missing_entry = !walked.missing_entry.empty()};
  std::string key = absl::StrCat(followed ? "followed " : "", walked.missing_entry);
  std::set<std::pair<int, Grade>> seen;
  for (const Requirement& requirement : walked.requirements) {
    if (!seen.emplace(requirement.ask, requirement.grade).second) continue;
    Set(demand.by_grade[static_cast<int>(requirement.grade)], requirement.ask);
    absl::StrAppend(&key, " ", requirement.ask, Name(requirement.grade));
  }
  const auto [it, added] = demand_numbers_.emplace(key, static_cast<int>(demands_.size()));
  if (added) demands_.push_back(std::move(demand));
  return it->second;
}

const ApiCheck::Bits& ApiCheck::FailuresOf(const Tree& library) {
  Answered& answered = answers_[library->id];
  if (answered.asks == asks_.size()) return answered.failures;
  Evaluation evaluation(tables_, asks_, *library);
  for (int ask = answered.asks; ask < asks_.size(); ++ask) {
    if (evaluation.Fails(ask)) Set(answered.failures, ask);
  }
  answered.asks = asks_.size();
  return answered.failures;
}

PairGrade ApiCheck::Grade_(const Demand& demand, const Bits& failures) const {
  if (demand.missing_entry || Meet(demand.by_grade[0], failures)) return PairGrade::kImport;
  if (Meet(demand.by_grade[1], failures)) return PairGrade::kConstruct;
  if (!demand.followed) return PairGrade::kUnknown;
  return Meet(demand.by_grade[2], failures) ? PairGrade::kPossible : PairGrade::kNothing;
}

const std::vector<Requirement>& ApiCheck::RequirementsOf(const Tree& engine) {
  return Walk(engine).requirements;
}

absl::StatusOr<PairGrade> ApiCheck::GradeOf(const Tree& engine, const Tree& library) {
  ASSIGN_OR_RETURN(const auto plane, Plane({engine}, {library}));
  return plane[0][0];
}

absl::StatusOr<std::vector<std::vector<PairGrade>>> ApiCheck::Plane(
    const std::vector<Tree>& engines, const std::vector<Tree>& libraries) {
  std::vector<int> demand_of;
  for (const Tree& engine : engines) demand_of.push_back(engine ? Walk(engine).demand : -1);
  RETURN_IF_ERROR(tables_.failure());
  std::vector<const Bits*> failures_of;
  for (const Tree& library : libraries) {
    failures_of.push_back(library ? &FailuresOf(library) : nullptr);
  }
  RETURN_IF_ERROR(tables_.failure());
  std::map<int, std::vector<PairGrade>> rows;  // equal demands, equal rows
  std::vector<std::vector<PairGrade>> plane;
  for (const int demand : demand_of) {
    std::vector<PairGrade>& row = rows[demand];
    if (row.empty()) {
      for (const Bits* failures : failures_of) {
        row.push_back(demand < 0 || !failures ? PairGrade::kUnknown
                                              : Grade_(demands_[demand], *failures));
      }
    }
    plane.push_back(row);
  }
  return plane;
}

absl::StatusOr<std::vector<Violation>> ApiCheck::Check(const Tree& engine, const Tree& library) {
  std::vector<Violation> violations;
  const Walked& walked = Walk(engine);
  Evaluation evaluation(tables_, asks_, *library);
  if (!walked.missing_entry.empty()) {
    violations.push_back({.grade = Grade::kImport,
                          .reason = "missing-module",
                          .asked = walked.missing_entry,
                          .problem = "the engine itself has no such module"});
  }
  for (const Requirement& requirement : walked.requirements) {
    const LibraryAnswer& answer = evaluation.Of(requirement.ask);
    if (!answer.failure) continue;
    const Ask& ask = asks_.At(requirement.ask);
    const Failure& failure = *answer.failure;
    violations.push_back(
        {.grade = requirement.grade,
         .reason = failure.reason,
         .engine_file = engine->PathOf(requirement.module, tables_.ModuleName(requirement.module)),
         .engine_line = requirement.line,
         .asked = asks_.ToString(requirement.ask),
         .problem = absl::StrCat(failure.problem, Elsewhere(evaluation.library(), ask, failure)),
         .where = failure.where});
  }
  RETURN_IF_ERROR(tables_.failure());
  std::stable_sort(violations.begin(), violations.end(), [](const auto& a, const auto& b) {
    return std::tie(a.grade, a.engine_file, a.engine_line) <
           std::tie(b.grade, b.engine_file, b.engine_line);
  });
  return violations;
}

absl::StatusOr<std::vector<Violation>> ApiCheck::CheckRed(const Tree& engine, const Tree& library) {
  ASSIGN_OR_RETURN(std::vector<Violation> violations, Check(engine, library));
  std::erase_if(violations, [](const Violation& v) { return v.grade == Grade::kPossible; });
  return violations;
}

}  // namespace bkm
