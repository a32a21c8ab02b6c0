// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_INHERITED_CELLS_H_
#define HARNESS_RUNNER_INHERITED_CELLS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/runner/task.h"

namespace bkm {

// Which cells of a run took the observation of another cell, and a sample of cells that are
// measured although they could have: their measurements show whether the reuse was right.
class InheritedCells {
 public:
  // One of `one_in` cells is in the sample; 0: none. The sample depends on `seed` and the cell's
  // id.
  InheritedCells(int one_in, uint64_t seed) : one_in_(one_in), seed_(seed) {}

  bool IsSampled(const std::string& id) const;
  // The cell `index` takes `kept`.
  void Add(size_t index, KeptObservation kept) { taken_[index] = std::move(kept); }
  void Remove(size_t index) { taken_.erase(index); }
  // The cell `index` is measured although `kept` could stand for it.
  void Expect(size_t index, KeptObservation kept) { expected_[index] = std::move(kept); }

  // What the measurement of a sampled cell showed.
  struct Difference {
    KeptObservation kept;
    std::string what;           // the first fact that differs
    std::vector<size_t> cells;  // took the same observation
    bool operator==(const Difference&) const = default;
  };
  // Compares what was measured with what was expected of the cell. Nullopt if nothing was expected,
  // or if both are equal.
  std::optional<Difference> Check(size_t index, const std::string& id, const Json& observation,
                                  const std::filesystem::path& folder);

  // For run.json: {"one_in":20,"seed":S,"checked":2,"differences":[{"cell","from","what"}]}.
  Json ToJson() const;

 private:
  const int one_in_;
  const uint64_t seed_;
  std::map<size_t, KeptObservation> taken_;
  std::map<size_t, KeptObservation> expected_;
  int checked_ = 0;
  Json differences_ = Json::array();
};

// The first judged fact in which two measurements of a cell differ; "" if there is none. Times,
// memory, absolute paths and addresses in messages do not count. Each folder holds the tensors of
// its observation.
std::string FirstDifference(const Json& before, const std::filesystem::path& before_folder,
                            const Json& after, const std::filesystem::path& after_folder);

// Remembers in a cell's folder whose observation it took.
absl::Status WriteInherited(const std::filesystem::path& folder, const KeptObservation& kept);
// Nullopt if the cell was measured.
std::optional<KeptObservation> ReadInherited(const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_RUNNER_INHERITED_CELLS_H_
