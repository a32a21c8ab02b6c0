// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_MUTATION_H_
#define HARNESS_SELFTEST_MUTATION_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

enum class Party { kEngine, kLibrary };
inline constexpr std::array kPartyNames = {"engine", "library"};
inline absl::string_view Name(Party party) { return kPartyNames[static_cast<size_t>(party)]; }

// Larger files of a subject are not changed.
inline constexpr int64_t kLargestSource = 4 << 20;

// One change of a subject's source: the bytes from `start` to `end` of a file are replaced.
struct Mutation {
  Party party = Party::kLibrary;
  std::string file;  // below the tree, such as torchtitan/models/attention.py
  int64_t line = 0;
  std::string function;  // or class
  std::string operation;
  bool trained = false;  // the code ran in a forward or training step, not only before
  int64_t start = 0;
  int64_t end = 0;
  std::string replacement;
  bool operator==(const Mutation&) const = default;
};

// The value of Cell::plant: "mutant:library/torchtitan/models/attention.py:12:wrong-axis:1a2b3c4d".
std::string PlantOf(const Mutation& mutation);

// `text` with the change. InvalidArgument if the text is too short: it is another file.
absl::StatusOr<std::string> Mutated(const Mutation& mutation, absl::string_view text);
// The changed lines as "-old" and "+new" lines, without context.
std::string DiffOf(const Mutation& mutation, absl::string_view text);

// harness/selftest/mutations.json.
struct MutationSettings {
  uint64_t seed = 0;
  double trained_share = 0;  // of the mutants, in code that runs in forwards and training steps
  std::map<std::string, int64_t> weights;  // by operator
};
absl::StatusOr<MutationSettings> MutationSettingsFromJson(const Json& json,
                                                          const std::string& origin);

// Everything that can be changed in the lines that ran.
struct PossibleMutations {
  std::vector<Mutation> mutations;
  int64_t unreached = 0;  // further ones, in lines of the same files that never ran
};

// `lines` is what a cell recorded: {"built": {file: [line]}, "trained": {...}}, with files below
// `tree`. Files that are missing or outside of the tree are left out. `python` parses the files;
// it runs none of their code.
absl::StatusOr<PossibleMutations> FindMutations(const std::filesystem::path& python, Party party,
                                                const std::filesystem::path& tree,
                                                const Json& lines);

// At most `count` of the possible mutations, chosen by the seed: first the phase, then the operator
// by its weight, then the place. A smaller count gives the first ones of a larger one. One line has
// at most one mutation of each operator.
std::vector<Mutation> PickMutations(std::vector<Mutation> possible,
                                    const MutationSettings& settings, int count);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_MUTATION_H_
