// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MASK_CHECK_H_
#define HARNESS_JUDGE_MASK_CHECK_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/judge/check_result.h"
#include "harness/judge/reach_check.h"
#include "harness/judge/relation.h"
#include "harness/model/observation.h"

namespace bkm {

// Which query attends to which key in one training step, whose batch has these documents.
struct StepMasks {
  PackedDocuments documents;
  absl::StatusOr<Relations> relations;
};

// Facts of CheckMask for readers. Its evidence holds more.
struct MaskFacts {
  struct Layer {  // whose relation differs from the asked one
    std::optional<int64_t> layer;
    std::string fault;                      // Name(MaskFault)
    std::optional<int64_t> extra, missing;  // pairs
    std::string window, asked;              // "8 tokens", where windows differ
  };
  struct Attended {
    std::optional<int64_t> layers, wrong;  // whose relations were read; that differ
  };
  std::optional<Attended> attended;
  std::vector<Layer> layers;
  // Of the first of these layers: a row for each document of queries, a character for each of keys.
  std::vector<std::string> picture;
};
void Describe(Fields& fields, MaskFacts& facts);

// Judges masks by their effect, from two witnesses:
// - which query attends to which key in each layer, read out of the kernel that ran (`relations`,
//   by digest). It must equal the asked relation exactly; a difference is classed
//   (mask_difference.h);
// - the reach test over the whole stack (reach_check.h), which needs no access to the layers.
//
// Both can fail the check, and it passes only if every layer's relation was read: in the forward
// that trains nothing (`relations`) and in each of the training steps `steps`, the first of the
// cell's. The type of mask that reached each layer can explain a leak (mask-missing) but never
// excuses one.
CheckResult CheckMask(const Observation& observation, const AskedMasks& asked,
                      const absl::StatusOr<Relations>& relations,
                      std::span<const StepMasks> steps = {});

}  // namespace bkm

#endif  // HARNESS_JUDGE_MASK_CHECK_H_
