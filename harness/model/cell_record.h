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
#include "harness/model/verdict.h"

namespace bkm {

// A control tells whose fault a red cell is, a repeat how much a cell varies; both stand beside a
// cell that was asked for and are counted apart.
enum class CellRole { kSubject, kControl, kRepeat };

// What measuring a cell again and again showed.
struct Stability {
  int runs = 0;                         // that say something: spurious ones are left out
  std::map<std::string, int> verdicts;  // "ok", "wrong at golden, log-probs-off" -> how often
  std::string drift;    // of the worst repeat against the first: a name of DriftClass, or empty
  double multiple = 0;  // its distance in floors
  bool flaky() const { return verdicts.size() > 1; }
  bool operator==(const Stability&) const = default;
};

// One entry of run.json: a cell of a run, where its folder is, and its verdict.
struct CellRecord {
  Cell cell;
  std::string id;
  CellRole role = CellRole::kSubject;
  std::string engine_date;  // YYYY-MM-DD of the subjects; empty where unknown
  std::string library_date;
  std::string
      library_version;  // what the runtime resolved to, for a library that lives in the runtime
  std::string lock;     // hash of the runtime's lock; empty when there is none
  std::string dir;      // below the run directory: "cells/..."
  double seconds = 0;   // wall time of the cell
  // When it was observed, RFC 3339 in UTC; of an inherited one, when that was. Empty: not said.
  std::string measured;
  std::optional<std::string>
      inherited_from;                  // id of the cell whose observation stands for this one
  std::string repeat_of;               // role kRepeat: id of the cell that it repeats
  std::optional<Verdict> verdict;      // absent: not measured yet
  std::optional<Stability> stability;  // present: the cell was repeated, and this is the first run
};

// A whole run.json.
struct RunRecord {
  std::string matrix;
  bool finished = false;
  std::vector<CellRecord> cells;
  // What made the run: harness version, options that change what is observed. Free-form.
  Json made_by = Json::object();
};

void Describe(Fields& fields, Stability& stability);
void Describe(Fields& fields, CellRecord& record);
void Describe(Fields& fields, RunRecord& run);

// The published form: stable keys, each cell's identity spelled out. `cell`
// carries what the flat keys leave out, so that a run can be judged again from its folder alone.
OrderedJson ToJson(const RunRecord& run);
absl::StatusOr<RunRecord> RunRecordFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_RECORD_H_
