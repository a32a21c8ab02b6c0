// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_MUTANT_OUTCOME_H_
#define HARNESS_SELFTEST_MUTANT_OUTCOME_H_

#include <array>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/model/cell_record.h"
#include "harness/model/observation.h"
#include "harness/selftest/mutation.h"

namespace bkm {

// What became of a mutant. Only killed and survived ones count.
enum class MutantOutcome {
  kKilled,      // it ran to its end, an observed number changed, and the judge says `wrong`
  kSurvived,    // the same, but the judge says `ok`
  kCrashed,     // it did not run to its end: nobody takes it for right
  kIdentical,   // it ran to its end, and no observed number changed
  kUnmeasured,  // unsupported, spurious, or interrupted
};
inline constexpr std::array kMutantOutcomeNames = {"killed", "survived", "crashed", "bit-identical",
                                                   "not measured"};
inline absl::string_view Name(MutantOutcome outcome) {
  return kMutantOutcomeNames[static_cast<size_t>(outcome)];
}

// One mutant and its result.
struct Mutant {
  Mutation mutation;
  std::string cell;  // its folder below the run directory
  std::string diff;
  MutantOutcome outcome = MutantOutcome::kUnmeasured;
  std::string verdict;  // as a short text: "wrong at golden, log-probs-off"
  std::string message;
};
void Describe(Fields& fields, Mutant& mutant);

// A hash of every number that a cell observed: weights after loading, log-probs of the forward that
// trains nothing, and of each step log-probs, loss, gradients, gradient norm, learning rate, and
// parameters before and after. Equal hashes mean equal bits.
absl::StatusOr<std::string> NumbersDigest(const Observation& observation,
                                          const std::filesystem::path& cell_dir);

// `plain` is the digest of the cell without the mutation. A cell that was not measured has no
// observation, which is passed as null.
absl::StatusOr<MutantOutcome> OutcomeOf(const CellRecord& record, const Observation* observation,
                                        const std::filesystem::path& cell_dir,
                                        const std::string& plain);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_MUTANT_OUTCOME_H_
