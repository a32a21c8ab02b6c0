// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_EXECUTOR_OPTION_H_
#define HARNESS_CLI_EXECUTOR_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "harness/session/measurement.h"

namespace bkm {

// --executor and its options, of every command that runs cells of a matrix.
class ExecutorOption {
 public:
  void AddTo(CLI::App& app);

  // For MeasurementOptions. An error: an option cannot be read.
  absl::StatusOr<ExecutorMaker> Maker() const;

 private:
  static constexpr double kLeaseSeconds = 60;

  std::string name_ = "local";
  std::string address_;
  std::string resources_;
  std::string labels_;
  std::string program_;
  double lease_s_ = kLeaseSeconds;
};

}  // namespace bkm

#endif  // HARNESS_CLI_EXECUTOR_OPTION_H_
