// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_EXECUTOR_OPTION_H_
#define HARNESS_CLI_EXECUTOR_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "harness/session/measurement.h"

namespace bkm {

// What --executor ray was asked for, as text: see the help.
struct RayOptions {
  std::string address;
  std::string resources;
  std::string labels;
  std::string program;
  double lease_s = 60;
  bool operator==(const RayOptions&) const = default;
};
// Null in a program without Ray (bkm_run).
using RayMaker = absl::StatusOr<ExecutorMaker> (*)(const RayOptions& options);

// --executor and its options, of every command that runs cells of a matrix.
class ExecutorOption {
 public:
  explicit ExecutorOption(RayMaker ray) : make_ray_(ray) {}

  void AddTo(CLI::App& app);

  // For MeasurementOptions. An error: an option cannot be read.
  absl::StatusOr<ExecutorMaker> Maker() const;

 private:
  RayMaker make_ray_;
  std::string name_ = "local";
  RayOptions ray_;
};

}  // namespace bkm

#endif  // HARNESS_CLI_EXECUTOR_OPTION_H_
