// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_SHARDS_H_
#define HARNESS_SESSION_SHARDS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/matrix/plan.h"
#include "harness/model/cell_record.h"

namespace bkm {

// One of several parts of a plan, which machines run apart from each other: "2/3".
struct Shard {
  int index = 1;  // from 1
  int of = 1;
};
absl::StatusOr<Shard> ParseShard(const std::string& text);

// What run.json says of a shard, in made_by.
struct ShardRecord {
  int index = 1;
  int of = 1;
  std::string plan;             // digest of all cells of the plan
  int cells = 0;                // of the plan
  std::vector<int64_t> places;  // in the plan, of the shard's cells, in the order of run.json
  bool whole = false;           // whether the plan is the whole matrix
};
void Describe(Fields& fields, ShardRecord& record);

// Chooses the cells of a shard. Every machine with the same plan chooses the same. Cells that share
// a runtime stay together unless they cost more than one shard should; the shards cost about the
// same. InvalidArgument: the shard has no cell.
absl::StatusOr<ShardRecord> ChooseShard(const std::vector<PlannedCell>& plan, const Shard& shard);

// Merges runs that are all shards of one plan into the new run directory `out`, and judges it. An
// error names the shards that overlap, are missing, are damaged or are of another plan, matrix or
// program; then `out` is not there.
absl::StatusOr<RunRecord> MergeShards(const std::vector<std::filesystem::path>& shards,
                                      const std::filesystem::path& out);

}  // namespace bkm

#endif  // HARNESS_SESSION_SHARDS_H_
