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
#include "harness/model/probe.h"
#include "harness/model/subject.h"

namespace bkm {

// engine x library x runtime x probe: one thing that is run and gets one verdict.
struct Cell {
  std::string engine;                          // kind: verl-torchtitan, ...
  std::optional<SubjectSpec> engine_subject;   // absent for a control
  std::optional<SubjectSpec> library_subject;  // absent: what the runtime resolves to
  std::string engine_label;                    // revisions as the user wrote them
  std::string library_label;
  std::string runtime;             // policy's name
  std::string torch;               // version
  std::vector<std::string> relax;  // declared pins that the resolution drops
  std::string
      lock;  // only for a control that the planner added: the lock of the cells it stands beside
  Probe probe;
  // Faults that are planted to see that they are caught (harness/selftest); empty in every other
  // cell.
  std::vector<std::string> plant = {};
  int repeat = 1;  // 2 and more: the same cell measured once more, for run-to-run variation

  bool is_control() const { return !engine_subject.has_value(); }
};

// The cell's fields in the id's order: (key, value). A field with its default value is left out,
// the main ones never are.
std::vector<std::pair<std::string, std::string>> CellFields(const Cell& cell);

// "engine=verl-torchtitan@git:verl@<40 hex>,library=git:torchtitan@<40
// hex>,runtime=cpu,torch=2.13.0,model=qwen3,...". Spells all of the cell; the same grammar is the
// filter's.
std::string CellId(const Cell& cell);

// Some cells of a plan: "key=pattern,key=pattern". A pattern is a shell glob; a key that is not
// named matches everything. `engine` and `library` match the kind, the subject as resolved, and the
// subject as the user wrote it.
class CellFilter {
 public:
  static absl::StatusOr<CellFilter> Parse(absl::string_view text);
  static absl::StatusOr<CellFilter> FromPatterns(std::map<std::string, std::string> patterns);
  bool Matches(const Cell& cell) const;

 private:
  std::map<std::string, std::string> patterns_;
};

// A short name for people and folders: "verl-torchtitan-v0.8.0-torchtitan-baba6d82e-flex-1a2b3c4d";
// the end is a hash of `id`.
std::string CellFolderName(const Cell& cell, absl::string_view id);
// Its folder below the run directory: "cells/NAME".
std::string CellDirectory(const Cell& cell, absl::string_view id);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_H_
