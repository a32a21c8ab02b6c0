// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/shards.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kMostShards = 10'000;

// What a cell costs beside its tokens, in tokens.
constexpr int64_t kCostOfStart = 500;

// About how long the cell keeps a machine busy.
int64_t CostOf(const Cell& cell) {
  const Probe& probe = cell.probe;
  int64_t tokens = 0;
  for (int step = 0; step < probe.steps && !probe.documents.empty(); ++step) {
    const std::vector<int64_t>& layout = probe.documents[step % probe.documents.size()];
    tokens += std::accumulate(layout.begin(), layout.end(), int64_t{0});
  }
  return (kCostOfStart + tokens) * probe.layout.ranks();
}

// Cells with equal texts have equal requirements, and so the same runtime.
std::string RuntimeOf(const Cell& cell) {
  return absl::StrCat(cell.runtime, " ", cell.torch, " ", absl::StrJoin(cell.relax, ","), " ",
                      cell.engine_subject ? cell.engine_subject->ToString() : cell.engine, " ",
                      cell.library_subject ? cell.library_subject->ToString() : "");
}

struct Group {
  std::vector<size_t> places;
  int64_t cost = 0;
};

// The cells of each runtime, in groups that cost at most about `most`.
std::vector<Group> GroupsOf(const std::vector<PlannedCell>& plan, int64_t most) {
  std::vector<Group> groups;
  std::map<std::string, size_t> open;  // the group of a runtime that takes the next cell
  for (size_t place = 0; place < plan.size(); ++place) {
    const std::string runtime = RuntimeOf(plan[place].cell);
    const int64_t cost = CostOf(plan[place].cell);
    const auto known = open.find(runtime);
    if (known == open.end() || groups[known->second].cost + cost > most) {
      open[runtime] = groups.size();
      groups.emplace_back();
    }
    Group& group = groups[open[runtime]];
    group.places.push_back(place);
    group.cost += cost;
  }
  return groups;
}

}  // namespace

absl::StatusOr<Shard> ParseShard(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  Shard shard;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &shard.index) &&
      absl::SimpleAtoi(parts[1], &shard.of) && shard.index >= 1 && shard.index <= shard.of &&
      shard.of <= kMostShards)
    return shard;
  return absl::InvalidArgumentError(
      absl::StrCat("--shard ", text, ": write i/n with 1 <= i <= n, for example 2/3"));
}

void Describe(Fields& fields, ShardRecord& record) {
  fields.Int("index", record.index, 1, kMostShards);
  fields.Int("of", record.of, 1, kMostShards);
  fields.Field("plan", record.plan);
  fields.Int("cells", record.cells, 1, 1 << 30);
  fields.Field("places", record.places);
  fields.Field("whole", record.whole);
}

absl::StatusOr<ShardRecord> ChooseShard(const std::vector<PlannedCell>& plan, const Shard& shard) {
  std::string ids;
  int64_t cost = 0;
  for (const PlannedCell& planned : plan) {
    absl::StrAppend(&ids, planned.id, "\n");
    cost += CostOf(planned.cell);
  }
  std::vector<Group> groups = GroupsOf(plan, (cost + shard.of - 1) / shard.of);
  // The largest first, each to the shard that has the least.
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.cost > b.cost; });
  std::vector<Group> shards(shard.of);
  for (const Group& group : groups) {
    Group& least =
        *std::min_element(shards.begin(), shards.end(),
                          [](const Group& a, const Group& b) { return a.cost < b.cost; });
    least.places.insert(least.places.end(), group.places.begin(), group.places.end());
    least.cost += group.cost;
  }
  std::vector<size_t>& places = shards[shard.index - 1].places;
  if (places.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", shard.index, "/", shard.of,
                                                   " has no cell: the plan has ", plan.size()));
  }
  std::sort(places.begin(), places.end());
  return ShardRecord{.index = shard.index,
                     .of = shard.of,
                     .plan = Sha256(ids),
                     .cells = static_cast<int>(plan.size()),
                     .places = {places.begin(), places.end()}};
}

}  // namespace bkm
