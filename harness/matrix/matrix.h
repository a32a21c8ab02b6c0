// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MATRIX_MATRIX_H_
#define HARNESS_MATRIX_MATRIX_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/model/cell.h"
#include "harness/model/probe.h"
#include "harness/model/subject.h"

namespace bkm {

// What one cell may use before it is killed.
struct CellLimits {
  int timeout_s = 180;
  int cpu_s = 0;  // 0: follows from the time limit and the probe's threads and ranks
  int memory_mib = 8192;
  int output_mib = 64;
  int processes = 128;
  bool operator==(const CellLimits&) const = default;
};
void Describe(Fields& fields, CellLimits& limits);

// One product of engines, libraries, runtimes and probes. Every list is an axis.
struct MatrixGroup {
  std::string engine_kind;
  std::vector<SubjectSpec> engines;    // empty for a control
  std::vector<SubjectSpec> libraries;  // empty: the runtime chooses the version
  std::vector<std::string> runtimes;
  bool names_runtimes = false;     // else the planner may choose another one
  std::vector<std::string> torch;  // versions; empty: each runtime's default
  std::vector<std::string> relax;
  std::vector<Probe> probes;  // one for each combination of the values of its axes
};

// Cells that are left out.
struct MatrixExclusion {
  CellFilter filter;
  std::string why;    // in words
  std::string place;  // origin and JSON path, for messages
};

// A matrix file, or its equivalent in command-line flags.
struct Matrix {
  std::string name;
  std::string origin;  // of what it was read from, for messages
  // {"NAME": {"git": URL, "package": IMPORT NAME}}, unread; harness/source reads it.
  Json sources = Json::object();
  std::vector<MatrixGroup> groups;
  std::vector<MatrixExclusion> exclusions;
  CellLimits limits;
};

// Strict: unknown keys, wrong types and unknown names are errors that name `origin` and the JSON
// path.
absl::StatusOr<Matrix> MatrixFromJson(const Json& json, const std::string& origin);
absl::StatusOr<Matrix> ReadMatrix(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_MATRIX_MATRIX_H_
