// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_MUTATION_REPORT_H_
#define HARNESS_SELFTEST_MUTATION_REPORT_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/selftest/mutant_outcome.h"

namespace bkm {

// The mutants of one pair.
struct MutatedPair {
  std::string cell;  // id of the cell without a mutation
  uint64_t seed = 0;
  int64_t possible = 0;   // mutations of lines that ran
  int64_t unreached = 0;  // mutations of lines that never ran: none of them was made
  std::vector<Mutant> mutants;
};
void Describe(Fields& fields, MutatedPair& pair);

struct MutationCounts {
  std::map<MutantOutcome, int> by_outcome;
  int Of(MutantOutcome outcome) const;
  int total() const;
  // Those that ran to their end and changed an observed number.
  int counted() const;
  // The share of the counted ones that are red. Nullopt if none counts.
  std::optional<double> rate() const;
};
MutationCounts CountsOf(const std::vector<Mutant>& mutants);
MutationCounts CountsOf(const std::vector<MutatedPair>& pairs);
// "98 of 100 mutants that changed a number are red (98.0 %)"
std::string RateText(const MutationCounts& counts);

// For people: a line for each pair and operator, then each mutant that survived or was not
// measured, with its change.
std::string MutationText(const std::vector<MutatedPair>& pairs, double at_least);
OrderedJson MutationJson(const std::vector<MutatedPair>& pairs, double at_least);
// Reads what MutationJson wrote. InvalidArgument: the file holds something else.
absl::StatusOr<std::vector<MutatedPair>> ReadMutationReport(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_MUTATION_REPORT_H_
