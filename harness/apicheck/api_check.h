// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_API_CHECK_H_
#define HARNESS_APICHECK_API_CHECK_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/engine_walk.h"
#include "harness/apicheck/evaluation.h"
#include "harness/apicheck/requirement.h"
#include "harness/apicheck/source_tree.h"
#include "harness/apicheck/symbol_tables.h"
#include "harness/base/json.h"

namespace bkm {

// A requirement of an engine that a library does not meet.
struct Violation {
  Grade grade = Grade::kPossible;
  std::string reason;       // Failure::reason
  std::string engine_file;  // the place of the ask: "verl/workers/engine/torchtitan/utils.py"
  int engine_line = 0;
  std::string asked;  // "torchtitan.models.*.model_registry(1 by position, attn_backend=)"
  std::string problem;
  std::string where;  // the library's side; may be empty
  bool operator==(const Violation&) const = default;
};
// "verl/x.py:12 asks torchtitan.a.f(b=): has no keyword 'b' (torchtitan/a.py:7)"
std::string ToText(const Violation& violation);
Json ToJson(const Violation& violation);

// The check's result for a pair.
enum class PairGrade : unsigned char {
  kUnknown,    // a tree is missing, or the engine could not be followed
  kNothing,    // no violation found
  kPossible,   // only in code that may not be reached
  kConstruct,  // red
  kImport,     // red
};
absl::string_view Name(PairGrade grade);
inline bool IsRed(PairGrade grade) { return grade >= PairGrade::kConstruct; }

using Tree = std::shared_ptr<const SourceTree>;

// Checks versions of one kind of engine against versions of its library, by their sources alone.
// Collects asks once per engine tree, and answers once per library tree. Trees must outlive this
// object. Belongs to one thread.
class ApiCheck {
 public:
  ApiCheck(SymbolTables& tables, EngineEntry entry, std::string library)
      : tables_(tables), entry_(std::move(entry)), library_(std::move(library)) {}

  // All violations of a pair, the gravest first. An error if a symbol table cannot be read.
  absl::StatusOr<std::vector<Violation>> Check(const Tree& engine, const Tree& library);
  // Only red violations.
  absl::StatusOr<std::vector<Violation>> CheckRed(const Tree& engine, const Tree& library);
  absl::StatusOr<PairGrade> GradeOf(const Tree& engine, const Tree& library);
  // One row per engine, one column per library.
  absl::StatusOr<std::vector<std::vector<PairGrade>>> Plane(const std::vector<Tree>& engines,
                                                            const std::vector<Tree>& libraries);

  const std::vector<Requirement>& RequirementsOf(const Tree& engine);
  const Asks& asks() const { return asks_; }
  int distinct_engines() const { return static_cast<int>(demands_.size()); }

 private:
  using Bits = std::vector<uint64_t>;
  // An engine's asks without their places. Engines with equal demands share one.
  struct Demand {
    Bits by_grade[3];
    bool followed = false;
    bool missing_entry = false;
  };
  struct Walked {
    std::string missing_entry;
    std::vector<Requirement> requirements;
    int demand = -1;
    std::map<int, int> reads;
  };
  const Walked& Walk(const Tree& engine);
  int DemandOf(const Walked& walked, bool followed);
  // The asks that fail, as bits. Later calls add asks that are new since.
  const Bits& FailuresOf(const Tree& library);
  PairGrade Grade_(const Demand& demand, const Bits& failures) const;

  SymbolTables& tables_;
  const EngineEntry entry_;
  const std::string library_;
  Asks asks_;
  std::deque<Walked> walks_;
  std::map<std::string, const Walked*> walk_of_;  // by engine tree
  std::vector<Demand> demands_;
  std::map<std::string, int> demand_numbers_;
  struct Answered {
    int asks = 0;
    Bits failures;
  };
  std::map<std::string, Answered> answers_;  // by library tree
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_API_CHECK_H_
