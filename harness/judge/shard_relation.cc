// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/shard_relation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

// Fewer places say nothing about a shard.
constexpr int kLeastPlaces = 8;
// The share of a shard's places that must be wrong: some wrong values are right by chance.
constexpr double kLeastWrong = 0.75;
// Shards of one tensor have one factor if their places agree by this much beyond rounding.
constexpr double kSameShardFactor = 0.001;
constexpr char kZero[] = "zero";
constexpr char kStale[] = "stale";
constexpr char kWrong[] = "wrong";

// How a dimension is cut: as torch.chunk does.
struct Cut {
  size_t dimension = 0;
  int64_t shards = 1;
  int64_t size = 1;    // of the dimension
  int64_t stride = 1;  // of one step along it

  int64_t each() const { return (size + shards - 1) / shards; }
  int64_t Shard(int64_t place) const { return place / stride % size / each(); }
};

Cut CutOf(const std::vector<int64_t>& shape, size_t dimension, int64_t shards) {
  Cut cut = {.dimension = dimension, .shards = shards, .size = shape[dimension]};
  for (size_t i = dimension + 1; i < shape.size(); ++i) cut.stride *= shape[i];
  return cut;
}

std::string NameOf(size_t dimension, const std::vector<int64_t>& shape) {
  if (shape.size() == 1) return "elements";
  if (dimension + 1 == shape.size()) return "columns";
  return dimension + 2 == shape.size() ? "rows" : absl::StrCat("slices of dimension ", dimension);
}

// The degrees of the layout that cut tensors, each once.
std::set<int64_t> ShardsOf(const Layout& layout) {
  std::set<int64_t> degrees = {layout.shards(), layout.tp, layout.ep, layout.data_ranks(),
                               layout.shards() * layout.tp};
  degrees.erase(1);
  return degrees;
}

// Which rank has a shard: the rank itself, if the layout has one dimension of that degree alone.
std::string RankOf(int64_t shard, int64_t shards, const Layout& layout) {
  if (layout.ranks() == shards) return absl::StrCat("the shard of rank ", shard, " of ", shards);
  std::vector<std::string> names;
  for (const LayoutDimension& dimension : LayoutDimensions()) {
    if (layout.*dimension.degree == shards) names.emplace_back(dimension.name);
  }
  if (names.size() == 1)
    return absl::StrCat("the shard of ", names[0], " rank ", shard, " of ", shards);
  return absl::StrCat("shard ", shard, " of ", shards);
}

bool IsAt(double seen, double value) {
  return std::abs(seen - value) <= 1e-6 * std::abs(value) + 1e-12;
}

// Whether the places of a shard have these values.
bool Hold(const ShardedSample& sample, const std::vector<size_t>& places,
          const std::vector<double>& values) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (!IsAt(sample.seen[places[i]], values[i])) return false;
  }
  return true;
}

// What a shard is, in a word, or which other shard it holds.
std::string StateOf(const ShardedSample& sample, const std::vector<size_t>& places, const Cut& cut,
                    int64_t shard, const Layout& layout) {
  std::vector<double> zeros(places.size()), before;
  if (Hold(sample, places, zeros)) return kZero;
  if (!sample.before.empty()) {
    for (const size_t i : places) before.push_back(sample.before[i]);
    if (Hold(sample, places, before)) return kStale;
  }
  if (!sample.right_at) return kWrong;
  for (int64_t other = 0; other < cut.shards; ++other) {
    if (other == shard) continue;
    // Shards may differ in size at the end.
    std::vector<size_t> both;
    std::vector<int64_t> indices;
    for (const size_t i : places) {
      const int64_t along = sample.places[i] / cut.stride % cut.size + (other - shard) * cut.each();
      if (along < 0 || along >= cut.size) continue;
      both.push_back(i);
      indices.push_back(sample.places[i] + (other - shard) * cut.each() * cut.stride);
    }
    if (both.size() >= kLeastPlaces && Hold(sample, both, sample.right_at(indices)))
      return RankOf(other, cut.shards, layout);
  }
  return kWrong;
}

std::optional<WrongShard> WrongShardOf(const ShardedSample& sample, const Cut& cut,
                                       const Layout& layout) {
  struct Seen {
    int counting = 0, wrong = 0;
    std::vector<size_t> places;
  };
  std::vector<Seen> shards(cut.shards);
  for (size_t i = 0; i < sample.places.size(); ++i) {
    Seen& seen = shards[cut.Shard(sample.places[i])];
    seen.places.push_back(i);
    seen.wrong += !sample.is_right[i];
    seen.counting += sample.counts[i];
  }
  std::optional<int64_t> wrong;
  for (int64_t shard = 0; shard < cut.shards; ++shard) {
    const Seen& seen = shards[shard];
    if (seen.counting < kLeastPlaces) return std::nullopt;
    if (seen.wrong == 0) continue;
    if (wrong || seen.wrong < kLeastWrong * seen.counting) return std::nullopt;
    wrong = shard;
  }
  if (!wrong) return std::nullopt;
  return WrongShard{.dimension = NameOf(cut.dimension, sample.shape),
                    .first = *wrong * cut.each(),
                    .last = std::min((*wrong + 1) * cut.each(), cut.size) - 1,
                    .size = cut.size,
                    .shard = *wrong,
                    .shards = cut.shards,
                    .is = StateOf(sample, shards[*wrong].places, cut, *wrong, layout),
                    .where = RankOf(*wrong, cut.shards, layout)};
}

bool IsComplete(const ShardedSample& sample) {
  const size_t size = sample.places.size();
  int64_t numel = 1;
  for (const int64_t each : sample.shape) numel *= each;
  return !sample.shape.empty() && numel > 0 && sample.seen.size() == size &&
         sample.right.size() == size && sample.is_right.size() == size &&
         sample.counts.size() == size && (sample.before.empty() || sample.before.size() == size) &&
         std::all_of(sample.places.begin(), sample.places.end(),
                     [&](int64_t place) { return place >= 0 && place < numel; });
}

struct ShardFit {
  double factor = 0;
  double off = 0;  // relative to the factor
};

// The factor between the places of one shard; nullopt if there are too few or the right ones
// vanish.
std::optional<ShardFit> FactorOf(const ShardedSample& sample, const std::vector<size_t>& places) {
  if (places.size() < kLeastPlaces) return std::nullopt;
  double product = 0, square = 0, rest = 0;
  for (const size_t i : places) {
    product += sample.seen[i] * sample.right[i];
    square += sample.right[i] * sample.right[i];
  }
  if (!(square > 0) || !(product > 0) || !std::isfinite(product)) return std::nullopt;
  ShardFit fit = {.factor = product / square};
  for (const size_t i : places) {
    const double off = sample.seen[i] - fit.factor * sample.right[i];
    rest += off * off;
  }
  fit.off = std::sqrt(rest / square) / fit.factor;
  return fit;
}

}  // namespace

std::optional<WrongShard> FindWrongShard(const ShardedSample& sample, const Layout& layout) {
  if (!IsComplete(sample)) return std::nullopt;
  // Fewer shards explain more: two of four shards can be one of two.
  for (const int64_t shards : ShardsOf(layout)) {
    for (size_t dimension = 0; dimension < sample.shape.size(); ++dimension) {
      if (sample.shape[dimension] < shards) continue;
      const Cut cut = CutOf(sample.shape, dimension, shards);
      if (const auto found = WrongShardOf(sample, cut, layout)) return found;
    }
  }
  return std::nullopt;
}

std::optional<std::string> DescribeShards(const std::string& what,
                                          const std::map<std::string, ShardedSample>& samples,
                                          const Layout& layout) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> found;  // by where, is
  std::map<std::string, WrongShard> shards;                                       // by tensor
  size_t wrong = 0;
  for (const auto& [name, sample] : samples) {
    if (std::find(sample.is_right.begin(), sample.is_right.end(), false) == sample.is_right.end())
      continue;
    ++wrong;
    const std::optional<WrongShard> shard = FindWrongShard(sample, layout);
    if (!shard) continue;
    found[{shard->where, shard->is}].push_back(name);
    shards[name] = *shard;
  }
  // One explanation, of most of what is wrong. Small tensors cannot be told apart.
  if (found.size() != 1 || 2 * shards.size() <= wrong) return std::nullopt;
  const auto& [key, names] = *found.begin();
  const WrongShard& first = shards.at(names[0]);
  const std::string range =
      absl::StrFormat("%s %d to %d of %d", first.dimension, first.first, first.last, first.size);
  const bool is_word = key.second == kZero || key.second == kStale || key.second == kWrong;
  if (names.size() == 1) {
    return absl::StrFormat("%s %s %s %s in %s (%s) and is right in the rest", what, names[0],
                           is_word ? "is" : "holds", key.second, range, key.first);
  }
  return absl::StrFormat("%s %d tensors %s %s in %s and right in the rest (first %s, %s)", what,
                         names.size(), is_word ? "is" : "holds", key.second, key.first, names[0],
                         range);
}

std::optional<std::string> DescribeShardFactors(const std::map<std::string, ShardedSample>& samples,
                                                const std::map<std::string, double>& tolerances,
                                                const Layout& layout) {
  const int64_t shards = layout.shards();
  if (shards == 1) return std::nullopt;
  std::vector<std::optional<double>> common(shards);
  size_t told = 0;
  double widest = kSameShardFactor;
  for (const auto& [name, sample] : samples) {
    const auto tolerance = tolerances.find(name);
    if (!IsComplete(sample) || tolerance == tolerances.end() || sample.shape[0] < shards) continue;
    const Cut cut = CutOf(sample.shape, 0, shards);
    std::vector<std::vector<size_t>> places(shards);
    for (size_t i = 0; i < sample.places.size(); ++i)
      places[cut.Shard(sample.places[i])].push_back(i);
    std::vector<ShardFit> fits;
    for (const auto& of_shard : places) {
      if (const auto fit = FactorOf(sample, of_shard)) fits.push_back(*fit);
    }
    if (fits.size() != places.size()) continue;
    const double allowed = tolerance->second + kSameShardFactor;
    widest = std::max(widest, allowed);
    for (int64_t shard = 0; shard < shards; ++shard) {
      if (fits[shard].off > allowed) return std::nullopt;
      if (!common[shard]) common[shard] = fits[shard].factor;
      if (std::abs(fits[shard].factor - *common[shard]) > allowed * *common[shard])
        return std::nullopt;
    }
    ++told;
  }
  if (told < 2) return std::nullopt;
  double inverse_squares = 0;
  bool differ = false;
  std::vector<std::string> parts;
  for (int64_t shard = 0; shard < shards; ++shard) {
    inverse_squares += 1 / (*common[shard] * *common[shard]);
    differ |= std::abs(*common[shard] - *common[0]) > widest * *common[0];
    parts.push_back(absl::StrFormat("%.3f in %s", *common[shard], RankOf(shard, shards, layout)));
  }
  // The squares of the shards' norms add up to the square of the norm of all.
  const bool is_clipped_alone = std::abs(inverse_squares - 1) < 2 * widest;
  if (!differ && !is_clipped_alone) return std::nullopt;
  return absl::StrCat("the factor between gradients and the golden is ",
                      absl::StrJoin(parts, " and "), ", in every tensor",
                      is_clipped_alone ? ": each rank clips by the norm of its own shards" : "");
}

}  // namespace bkm
