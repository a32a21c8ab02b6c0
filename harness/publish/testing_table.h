// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TESTING_TABLE_H_
#define HARNESS_PUBLISH_TESTING_TABLE_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// Values for tests: a row that works except for one attention, whose message is hostile, and one
// whose requirements contradict each other.

inline PublishedVersion AVersion(const std::string& subject, const std::string& label,
                                 const std::string& date) {
  return {.subject = subject, .label = label, .date = date};
}

inline PublishedCell ACell(const std::string& attention, Verdict verdict) {
  return {.id = "engine=verl-torchtitan@git:verl@v0.8.0,attention=" + attention,
          .library = "pypi:torchtitan==0.3.0",
          .probe = {.attention = attention},
          .evidence = {.run = "../runs/bkm",
                       .dir = "cells/a-" + attention,
                       .measured = "2026-06-01",
                       .cost = {.seconds = 2.5},
                       .verdict = std::move(verdict)}};
}

inline PublishedRow AGoodRow() {
  PublishedRow row;
  row.id = "verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0";
  row.engine = "verl-torchtitan";
  row.engine_version = AVersion("git:verl@" + std::string(40, 'a'), "v0.8.0", "2026-05-20");
  row.library = "torchtitan";
  row.library_from = row.library_to = AVersion("pypi:torchtitan==0.3.0", "0.3.0", "2026-05-30");
  row.library_versions = {row.library_to};
  row.runtime = "cpu";
  row.python = "3.11";
  row.torch = "2.13.0";
  row.lock = std::string(64, 'b');
  row.device = "cpu";
  row.status = RowStatus::kWorksExcept;
  row.cells = {ACell("flex", {.kind = VerdictKind::kOk, .stage = Stage::kGolden}),
               ACell("sdpa", {.kind = VerdictKind::kRefused,
                              .stage = Stage::kConstruct,
                              .reason = "refused-option",
                              .message = "ValueError: <b>sdpa</b> | \"not\" supported & =never\x1b",
                              .blame = {"engine"}})};
  row.cells[0].control = row.cells[0].evidence;
  row.cells[0].contradicted_by = {row.cells[1].evidence};
  row.cells[1].inherited_from = "another cell";
  row.measured = "2026-06-01";
  row.expires = "2026-08-30";
  row.install = {"uv venv --python 3.11", "uv pip sync pylock." + row.id + ".toml"};
  row.pylock = "pylock." + row.id + ".toml";
  row.sandbox = "full";
  row.measure_again = "bkm run --engine verl-torchtitan@git:verl@" + std::string(40, 'a') +
                      " --attention flex,sdpa --seed 0";
  row.horizon = {{"verl", std::string(40, 'd'), "2026-06-05"}};
  row.cells[0].key = std::string(64, 'e');
  return row;
}

inline PublishedRow AContradiction() {
  PublishedRow row = AGoodRow();
  row.id = "verl-torchtitan-0-9-1-torchtitan-0-3-0-cpu-torch-2-13-0";
  row.engine_version = AVersion("pypi:verl==0.9.1", "0.9.1", "2026-06-10");
  row.lock = row.python = row.pylock = "";
  row.install = {};
  row.horizon = {};
  row.measure_again = "";
  row.status = RowStatus::kFails;
  row.cells = {ACell("flex", {.kind = VerdictKind::kBroken,
                              .stage = Stage::kResolve,
                              .reason = "no-solution",
                              .message = "numpy<2 and numpy>=2 contradict each other",
                              .blame = {"engine", "library"}})};
  return row;
}

inline PublishedTable ATable() {
  return {.date = "2026-06-11",
          .runs = {{.dir = "../runs/bkm", .matrix = "bkm", .cell_code = "c0de", .cells = 3}},
          .rows = {AContradiction(), AGoodRow()}};
}

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TESTING_TABLE_H_
