// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_MUTATION_SESSION_H_
#define HARNESS_SELFTEST_MUTATION_SESSION_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/runner/task.h"
#include "harness/selftest/mutation_report.h"
#include "harness/session/measurement.h"

namespace bkm {

struct MutationOptions {
  MutationSettings settings;
  int mutants = 60;
  // By RealClock::Elapsed(): no mutant starts later.
  absl::Duration until = absl::InfiniteDuration();
};

// Measures how many faults in the sources of a right cell make it red. Runs the cell unchanged, and
// once more to record which lines run; then each mutant as a cell of its own, by the ordinary
// runner and judge. Keeps everything in `setup.directory`, and continues there. After an interrupt,
// or when the time is up, the result holds the mutants so far.
// FailedPrecondition: the unchanged cell is not ok, or two runs of it differ.
absl::StatusOr<MutatedPair> MutatePair(const MeasurementSetup& setup, const PreparedCell& cell,
                                       const MutationOptions& options);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_MUTATION_SESSION_H_
