// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_H_
#define HARNESS_MODEL_CELL_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/cell_pattern.h"
#include "harness/model/probe.h"
#include "harness/model/subject.h"

namespace bkm {

// A test case: engine x library x runtime x probe. It is run once and gets one verdict.
struct Cell {
  std::string engine;                          // kind, such as verl-torchtitan
  std::optional<SubjectSpec> engine_subject;   // absent for a control
  std::optional<SubjectSpec> library_subject;  // absent: the runtime chooses the version
  std::string engine_label;                    // revisions as the user wrote them
  std::string library_label;
  std::string runtime;             // name of a runtime policy
  std::string torch;               // version
  std::vector<std::string> relax;  // declared pins that the resolution drops
  // Set only for a control that the planner added: the lock of the cells that it controls.
  std::string lock;
  Probe probe;
  // Faults that the self-test plants in this cell (harness/selftest); empty in other cells.
  std::vector<std::string> plant = {};
  int repeat = 1;  // 2 or more: a further run of the same cell, to see run-to-run variation

  // The library alone, called by bkm. Driven by its own trainer it is none, and a row of a table.
  bool is_control() const { return !engine_subject && probe.drive != "trainer"; }
};

struct Dimension;  // harness/model/dimension.h

// The fields that the id contains, in its order: (key, escaped value). A field with its default
// value is left out unless it is one of the main ones.
std::vector<std::pair<std::string, std::string>> CellFields(const Cell& cell);

// "engine=verl-torchtitan@git:verl@<40 hex>,library=git:torchtitan@<40
// hex>,runtime=cpu,torch=2.13.0,model=qwen3,...". Distinct cells have distinct ids, and an id is a
// filter that matches its cell.
std::string CellId(const Cell& cell);

// Some cells of a plan: "key=pattern,key=pattern". A pattern is a shell glob over the value as ids
// spell it, with %XX for ',' and other special bytes; a key that is not named matches everything.
// Default values match like any other, and an empty pattern matches them. `engine` and `library`
// match the kind, the subject as resolved, and the subject as the user wrote it.
class CellFilter {
 public:
  static absl::StatusOr<CellFilter> Parse(absl::string_view text);
  static absl::StatusOr<CellFilter> FromPatterns(
      const std::map<std::string, std::string>& patterns);
  bool Matches(const Cell& cell) const;
  // An error for the first pattern that none of `cells` matches: a misspelt value. It lists the
  // values that the cells have. Without cells, every value is fine.
  absl::Status CheckValues(const std::vector<const Cell*>& cells) const;

 private:
  std::vector<std::pair<const Dimension*, CellPattern>> patterns_;
};

// A short name for people and folders, which ends with a hash of `id`:
// "verl-torchtitan-v0.8.0-torchtitan-baba6d82e-flex-1a2b3c4d".
std::string CellFolderName(const Cell& cell, absl::string_view id);
// The cell's folder in the run directory: "cells/NAME".
std::string CellDirectory(const Cell& cell, absl::string_view id);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_H_
