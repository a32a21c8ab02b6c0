// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TESTING_RUNS_H_
#define HARNESS_PUBLISH_TESTING_RUNS_H_

#include <string>
#include <vector>

#include "harness/publish/evidence.h"

namespace bkm {

// Runs for tests: verl v0.8.0 (a commit) with torchtitan 0.3.0 (a release).

inline Verdict Ok() { return {.kind = VerdictKind::kOk, .stage = Stage::kGolden}; }

inline Verdict Broken(const std::string& message = "ImportError: no name 'X' (a.py:1)") {
  return {.kind = VerdictKind::kBroken,
          .stage = Stage::kImport,
          .reason = "name-missing",
          .message = message,
          .blame = {"interface"}};
}

inline CellRecord ARecord(const std::string& attention, Verdict verdict,
                          const std::string& measured = "2026-06-01T00:00:00Z") {
  CellRecord record;
  record.cell.engine = "verl-torchtitan";
  record.cell.engine_subject =
      SubjectSpec{SourceKind::kGit, "verl", "7aed6b230776f963fa09509c10d9c3a767d1102c"};
  record.cell.engine_label = "v0.8.0";
  record.cell.library_subject = SubjectSpec{SourceKind::kPypi, "torchtitan", "0.3.0"};
  record.cell.library_label = "0.3.0";
  record.cell.runtime = "cpu";
  record.cell.torch = "2.13.0";
  record.cell.probe.attention = attention;
  record.engine_date = "2026-05-20";
  record.library_date = "2026-05-30";
  record.lock = std::string(64, 'b');
  record.id = CellId(record.cell);
  record.dir = CellDirectory(record.cell, record.id);
  record.measured = measured;
  record.verdict = std::move(verdict);
  return record;
}

inline RunEvidence ARun(const std::string& dir, std::vector<CellRecord> cells) {
  RunEvidence run{.root = dir, .published = {.dir = dir, .matrix = "m"}};
  run.record.matrix = "m";
  run.record.finished = true;
  run.record.cells = std::move(cells);
  return run;
}

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TESTING_RUNS_H_
