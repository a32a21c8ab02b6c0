// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_RECORD_H_
#define HARNESS_MODEL_CELL_RECORD_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/model/cell.h"
#include "harness/model/cell_cost.h"
#include "harness/model/verdict.h"

namespace bkm {

// A subject is a cell that the matrix asks for. A control shows whose fault a failure is, a repeat
// how much a cell varies, a twin what an engine option does: the same cell without it. These are
// counted apart from subjects.
enum class CellRole { kSubject, kControl, kRepeat, kTwin };

// What the repeats of a cell showed.
struct Stability {
  int runs = 0;                         // without spurious ones
  std::map<std::string, int> verdicts;  // short text ("wrong at golden, log-probs-off") -> count
  std::string drift;    // DriftClass of the repeat that is farthest from the first run, or empty
  double multiple = 0;  // distance of that repeat, in floors
  bool flaky() const { return verdicts.size() > 1; }
  bool operator==(const Stability&) const = default;
};

// One entry of run.json: a cell with its folder and its verdict.
struct CellRecord {
  Cell cell;
  std::string id;
  CellRole role = CellRole::kSubject;
  std::string engine_date;  // YYYY-MM-DD, of both subjects; empty if unknown
  std::string library_date;
  std::string library_version;  // the resolved version of a library that the runtime installs
  std::string lock;             // hash of the runtime's lock; empty without a lock
  std::string dir;              // below the run directory: "cells/..."
  CellCost cost = {};           // of an inherited cell: unknown
  // Time of the observation, also of an inherited one: RFC 3339 in UTC; empty if unknown.
  std::string measured;
  std::optional<std::string> inherited_from;  // id of the cell whose observation was reused
  std::string repeat_of;                      // for a repeat: id of the repeated cell
  std::optional<Verdict> verdict;             // absent: not measured yet
  std::optional<Stability> stability;         // present on the first run of a repeated cell

  // Its runs gave different verdicts.
  bool is_flaky() const { return stability && stability->flaky(); }
  // It works: ok in every run.
  bool is_green() const { return verdict && verdict->kind == VerdictKind::kOk && !is_flaky(); }
};

// A whole run.json.
struct RunRecord {
  std::string matrix;
  bool finished = false;
  // Name of the SandboxLevel of its cells; empty in runs of older versions.
  std::string sandbox = {};
  std::vector<CellRecord> cells;
  // Harness version and the options that change observations. Free-form.
  Json made_by = Json::object();
};

void Describe(Fields& fields, Stability& stability);
void Describe(Fields& fields, CellRecord& record);
void Describe(Fields& fields, RunRecord& run);

// run.json. Its keys are stable: scripts read them. A run can be judged again from its folder
// alone.
OrderedJson ToJson(const RunRecord& run);
absl::StatusOr<RunRecord> RunRecordFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_RECORD_H_
