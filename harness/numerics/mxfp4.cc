// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/mxfp4.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

constexpr std::array<float, 8> kMagnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr int kLargestExponent = 2;  // of E2M1: 6 is 1.5 * 2^2
constexpr int kBias = 127;
constexpr uint8_t kNotANumber = 255;
constexpr size_t kBytesPerBlock = kMxfp4Block / 2;

// The shared exponent of section 6.3: the largest value's, less that of the largest element.
int ExponentOf(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  return std::clamp(std::ilogb(largest) - kLargestExponent, -kBias, kBias);
}

uint8_t Rounded(float scaled) {
  const float magnitude = std::abs(scaled);
  uint8_t code = 0;
  while (code + 1u < kMagnitudes.size()) {
    const float middle = (kMagnitudes[code] + kMagnitudes[code + 1]) / 2;
    // An odd code has an odd mantissa, so a tie goes to the even one.
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
    ++code;
  }
  return std::signbit(scaled) ? code | 8 : code;
}

float ValueOf(int code, int exponent) {
  const float value = std::ldexp(kMagnitudes[code & 7], exponent);
  return (code & 8) != 0 ? -value : value;
}

}  // namespace

Mxfp4 ToMxfp4(std::span<const float> values) {
  Mxfp4 result;
  result.blocks.reserve(values.size() / 2);
  result.scales.reserve(values.size() / kMxfp4Block);
  for (size_t begin = 0; begin < values.size(); begin += kMxfp4Block) {
    const std::span<const float> block = values.subspan(begin, kMxfp4Block);
    const int exponent = ExponentOf(block);
    result.scales.push_back(static_cast<char>(exponent + kBias));
    for (size_t i = 0; i < kMxfp4Block; i += 2) {
      const int low = Rounded(std::ldexp(block[i], -exponent));
      const int high = Rounded(std::ldexp(block[i + 1], -exponent));
      result.blocks.push_back(static_cast<char>(low | high << 4));
    }
  }
  return result;
}

absl::StatusOr<std::vector<float>> FromMxfp4(absl::string_view blocks, absl::string_view scales) {
  if (blocks.size() != scales.size() * kBytesPerBlock) {
    return absl::InvalidArgumentError(absl::StrCat("MXFP4 with ", blocks.size(), " bytes of blocks",
                                                   " and ", scales.size(), " scales"));
  }
  std::vector<float> values;
  values.reserve(blocks.size() * 2);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint8_t scale = scales[i / kBytesPerBlock];
    if (scale == kNotANumber)
      return absl::InvalidArgumentError("MXFP4 with a scale that is not a number");
    const uint8_t pair = blocks[i];
    values.push_back(ValueOf(pair & 15, scale - kBias));
    values.push_back(ValueOf(pair >> 4, scale - kBias));
  }
  return values;
}

}  // namespace bkm
