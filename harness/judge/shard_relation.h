// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_SHARD_RELATION_H_
#define HARNESS_JUDGE_SHARD_RELATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/layout.h"

namespace bkm {

// A tensor at sampled places: what was seen and what is right. Samples of one tensor tell which of
// its shards is wrong.
struct ShardedSample {
  std::vector<int64_t> shape;
  std::vector<int64_t> places;  // flat indices
  std::vector<double> seen, right;
  // What was there before. If a wrong shard still has these values, it is stale. May be empty.
  std::vector<double> before;
  // The values that the tensor has at other flat indices; empty if nobody knows them. It tells
  // whether a wrong shard holds another one.
  std::function<std::vector<double>(const std::vector<int64_t>&)> right_at;
  // Whether the place is right.
  std::vector<bool> is_right;
  // Whether a wrong value would have shown there.
  std::vector<bool> counts;
};

// One contiguous shard of a tensor that is wrong where all others are right.
struct WrongShard {
  std::string dimension;  // "rows", "columns" or "elements", or of tensors with three dimensions
  int64_t first = 0, last = 0, size = 0;  // along that dimension
  int64_t shard = 0, shards = 0;
  std::string is;     // "zero", "stale", "wrong", or "the shard of rank 0 of 2" that it holds
  std::string where;  // "the shard of rank 1 of 2"
};

// The shard that is wrong, if the tensor is right everywhere else and each shard has enough places
// to tell. The numbers of shards are the degrees of the layout.
std::optional<WrongShard> FindWrongShard(const ShardedSample& sample, const Layout& layout);

// "the gradient of" and samples by tensor: "the gradient of NAME is zero in rows 128 to 255 of 256
// (the shard of rank 1 of 2) and is right in the rest", or the same of several tensors whose wrong
// shard is of the same rank. nullopt if no tensor has one, or if most wrong tensors have none.
std::optional<std::string> DescribeShards(const std::string& what,
                                          const std::map<std::string, ShardedSample>& samples,
                                          const Layout& layout);

// Of gradients beside the right ones: "the factor between gradients and the golden is 1.409 in the
// shard of rank 0 of 2 and 1.419 in the shard of rank 1 of 2, in every tensor", if every tensor
// whose shards can be told apart says so. Which shard each place is in follows from the first
// dimension, as FSDP2 cuts it. `tolerances`: relative, by tensor.
std::optional<std::string> DescribeShardFactors(const std::map<std::string, ShardedSample>& samples,
                                                const std::map<std::string, double>& tolerances,
                                                const Layout& layout);

}  // namespace bkm

#endif  // HARNESS_JUDGE_SHARD_RELATION_H_
