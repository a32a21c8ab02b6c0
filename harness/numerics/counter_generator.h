// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_COUNTER_GENERATOR_H_
#define HARNESS_NUMERICS_COUNTER_GENERATOR_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace bkm {

// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011): integer multiplications and xors only.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A named stream of random numbers, each a function of (seed, name, index): no state, any order,
// the same bits on every machine and compiler. Streams with different names are independent.
class CounterStream {
 public:
  CounterStream(uint64_t seed, absl::string_view name);

  // 64 uniform bits.
  uint64_t Bits(uint64_t index) const;

  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  uint64_t Below(uint64_t bound, uint64_t index) const;

  // Approximately normal with mean 0 and the given standard deviation, within 4.9 deviations: the
  // sum of eight uniform 16-bit integers (Irwin-Hall). It uses integers and one multiplication in
  // double, so no math library and no contraction can change a bit.
  double NormalLike(double standard_deviation, uint64_t index) const;

 private:
  std::array<uint32_t, 4> Block(uint64_t index) const;

  uint64_t seed_;
  uint64_t name_hash_;
};

}  // namespace bkm

#endif  // HARNESS_NUMERICS_COUNTER_GENERATOR_H_
