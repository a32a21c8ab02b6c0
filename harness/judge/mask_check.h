// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MASK_CHECK_H_
#define HARNESS_JUDGE_MASK_CHECK_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "harness/judge/check_result.h"
#include "harness/judge/reach_check.h"
#include "harness/judge/relation.h"
#include "harness/model/observation.h"

namespace bkm {

// Masks by meaning, from two witnesses:
// - who attends to whom in each layer, read out of the kernel that ran (`relations`, by digest).
//   It must be exactly what is asked of that layer; a difference is classed (mask_difference.h);
// - the reach test over the whole stack (reach_check.h), which needs nothing of the layers.
// Where the first could not be read, the second decides alone. The type of mask that reached each
// layer explains a leak (mask-missing), but cannot excuse one.
CheckResult CheckMask(const Observation& observation, const AskedMasks& asked,
                      const absl::StatusOr<std::map<std::string, Relation>>& relations);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MASK_CHECK_H_
