// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_LAYOUT_H_
#define HARNESS_MODEL_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// A cell has at most so many ranks.
inline constexpr int kMostRanks = 1024;

// How the ranks (processes) of a cell share the batch and the model: the degree of each kind of
// parallelism. The names are torchtitan's; `ulysses` is verl's sequence parallelism, in which
// attention sees the whole sequence with a part of the heads.
struct Layout {
  int dp_replicate = 1;  // replicas, each with the whole model
  int dp_shard = 1;      // ranks that share one replica's parameters (FSDP)
  int tp = 1;
  int cp = 1;
  int pp = 1;
  // Ranks that share a layer's experts. They are data-parallel ranks, too: without dp_shard and cp,
  // ep=2 means dp_shard=2.
  int ep = 1;
  int ulysses = 1;

  int shards() const { return dp_shard == 1 && cp == 1 && ep > 1 ? ep : dp_shard; }
  // Data-parallel ranks: each gets documents of its own.
  int data_ranks() const { return dp_replicate * shards(); }
  // Ranks that share one sequence's tokens.
  int sequence_ranks() const { return cp * ulysses; }
  int ranks() const { return data_ranks() * sequence_ranks() * tp * pp; }
  bool operator==(const Layout&) const = default;
};

// A dimension of a layout: its name and its degree.
struct LayoutDimension {
  const char* name;
  int Layout::*degree;
};
// In the order in which a layout is written.
const std::vector<LayoutDimension>& LayoutDimensions();

// "dp_shard=2+tp=2": the degrees above 1; "1" for one rank.
std::string LayoutText(const Layout& layout);
// Takes the dimensions in any order. An error says what is wrong, without the text's origin.
absl::StatusOr<Layout> ParseLayout(absl::string_view text);

}  // namespace bkm

#endif  // HARNESS_MODEL_LAYOUT_H_
