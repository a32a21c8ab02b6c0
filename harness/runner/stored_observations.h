// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_STORED_OBSERVATIONS_H_
#define HARNESS_RUNNER_STORED_OBSERVATIONS_H_

#include <filesystem>
#include <optional>

#include "harness/base/json.h"
#include "harness/model/cell_facts.h"
#include "harness/runner/task.h"

namespace bkm {

// The file in a cell's folder that holds what the worker observed from outside the cell.
inline constexpr char kObservedFile[] = "observed.json";

// The observations of other runs. A run also goes on without them, so failures are the
// implementation's own business.
class StoredObservations {
 public:
  virtual ~StoredObservations() = default;
  // An observation of another run that stands for `cell`.
  virtual std::optional<KeptObservation> Find(const PreparedCell& cell) = 0;
  // Stores the observation of `cell`, whose files are in `folder`, for other runs. `observed` is
  // what the worker saw from outside the cell's processes; null if it saw nothing.
  virtual void Keep(const PreparedCell& cell, const CellFacts& facts, const Json& observed,
                    const std::filesystem::path& folder) = 0;
  // Removes `kept`, which proved wrong: it stands for nothing any more.
  virtual void Discard(const KeptObservation& kept) = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_STORED_OBSERVATIONS_H_
