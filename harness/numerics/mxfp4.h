// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MXFP4_H_
#define HARNESS_NUMERICS_MXFP4_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// MXFP4 (OCP Microscaling Formats v1.0, sections 5.3 and 6.3): 32 neighbouring values share a power
// of two and have four bits each (E2M1: a sign, and 0, 0.5, 1, 1.5, 2, 3, 4 or 6).
inline constexpr size_t kMxfp4Block = 32;

// As in the files of gpt_oss.
struct Mxfp4 {
  std::string blocks;  // two values a byte, the first one in the low bits: 16 bytes a block
  std::string scales;  // the exponent of a block plus 127 (E8M0)
};

// Rounds to the nearest, ties to even; values beyond the largest are that one. `values` are whole
// blocks.
Mxfp4 ToMxfp4(std::span<const float> values);

// Exact. An error if the two do not have equally many blocks, or a scale is not a number.
absl::StatusOr<std::vector<float>> FromMxfp4(absl::string_view blocks, absl::string_view scales);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MXFP4_H_
