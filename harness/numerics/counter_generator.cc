// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/counter_generator.h"

namespace bkm {
namespace {

// FNV-1a with 64 bits (Fowler, Noll, Vo).
uint64_t HashOfName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

CounterStream::CounterStream(uint64_t seed, absl::string_view name)
    : seed_(seed), name_hash_(HashOfName(name)) {}

std::array<uint32_t, 4> CounterStream::Block(uint64_t index) const {
  return Philox4x32({Low(index), High(index), Low(name_hash_), High(name_hash_)},
                    {Low(seed_), High(seed_)});
}

uint64_t CounterStream::Bits(uint64_t index) const {
  const std::array<uint32_t, 4> block = Block(index);
  return static_cast<uint64_t>(block[1]) << 32 | block[0];
}

uint64_t CounterStream::Below(uint64_t bound, uint64_t index) const {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(Bits(index)) * bound >> 64);
}

double CounterStream::NormalLike(double standard_deviation, uint64_t index) const {
  int32_t sum = 0;
  for (const uint32_t word : Block(index)) sum += (word & 0xffff) + (word >> 16);
  // Eight uniforms on 0..65535: mean 8 * 65535 / 2, variance 8 * (2^32 - 1) / 12.
  constexpr int32_t kMean = 262140;
  constexpr double kPerDeviation = 1.8688123650118534e-05;  // 1 / sqrt(8 * (2^32 - 1) / 12)
  const double scale = standard_deviation * kPerDeviation;
  return static_cast<double>(sum - kMean) * scale;
}

}  // namespace bkm
