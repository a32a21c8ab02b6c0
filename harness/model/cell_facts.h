// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_FACTS_H_
#define HARNESS_MODEL_CELL_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"
#include "harness/model/cell_cost.h"
#include "harness/model/observation.h"

namespace bkm {

// What was seen of one cell: typed for whoever decides, and as the JSON of observation.json, which
// also holds what no decision reads (versions, usage, what adapters say). Both always agree.
class CellFacts {
 public:
  // The gate for what a worker sends: as it was reported, if all of it can be read. Otherwise only
  // the harness's own facts are left, and a cell that claims to have finished has the ending
  // "malformed", whose message names the first fault. Files that it names: AdmittedCell().
  static CellFacts OfReport(Json reported);
  // An observation that was admitted before. The error names the field and `origin`.
  static absl::StatusOr<CellFacts> FromJson(Json json, const std::string& origin);
  // Of a cell that never ran. `stage`: what it could not enter; absent: nobody knows.
  static CellFacts NeverRan(EndingKind why, absl::string_view message,
                            std::optional<Stage> stage = std::nullopt);

  const Observation& seen() const { return seen_; }
  const Json& json() const { return json_; }
  const ObservedEnding& ending() const { return seen_.ending; }
  // {"built": {party: {file: [line]}}, ...}; null if nobody recorded the lines that ran.
  const Json& lines() const;
  CellCost cost() const { return CostOf(json_); }
  // RFC 3339, UTC; empty if it is not known.
  std::string measured() const;

  bool operator==(const CellFacts& other) const { return json_ == other.json_; }

  // Only the harness's own facts, with the ending "malformed" as above.
  CellFacts Malformed(absl::string_view fault) const;

  // What the runner adds.
  void SetMeasured(std::string time);
  void SetTimeouts(int64_t runs);
  void SetCrashes(int64_t runs);
  void SetMachine(const ObservedMachine& machine);

 private:
  CellFacts(Json json, Observation seen) : json_(std::move(json)), seen_(std::move(seen)) {}

  Json json_;
  Observation seen_;
};

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_FACTS_H_
