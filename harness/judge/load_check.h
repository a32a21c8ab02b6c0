// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_LOAD_CHECK_H_
#define HARNESS_JUDGE_LOAD_CHECK_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/judge/check_result.h"
#include "harness/model/observation.h"
#include "harness/numerics/safetensors.h"

namespace bkm {

// Norm, sum and size of each tensor of a weights file, in fp64.
absl::StatusOr<std::map<std::string, ObservedTensor>> Measure(const SafetensorsFile& weights);

// Whether each parameter after loading is the one of the file. Parameters held in fp32 must agree
// to 1e-6 of the norm. Parameters of an engine that ran bf16 may have been rounded to it, each
// element by up to 2^-8 of itself and without bias: norms must agree to 2^-8, and sums, whose
// rounding errors add up as a random walk, to 2^-6 of the norm. Another draw of the same
// distribution differs in its sum by about 1.4 norms, a tensor left at its initial value by more.
//
// Parameters of the file that were not seen under their names (the library's own names for them do
// not map to the file's) are judged together: what the model holds beyond those that were seen, if
// it has as many elements, has the norm and the sum of what the file has for them. Neither depends
// on the order of elements or on how they are cut into tensors.
//
// The check belongs to the rung `golden`, not `load`: a cell that loaded nothing stands on the
// ladder where its numbers fail, and `load` is where loading itself raises. So a cell whose weights
// were not loaded is `wrong` at golden, with weights-not-loaded as the reason why the numbers are.
CheckResult CheckLoad(const std::map<std::string, ObservedTensor>& loaded,
                      const std::optional<ObservedTensor>& held,
                      const std::map<std::string, ObservedTensor>& file,
                      absl::string_view precision_ran);

}  // namespace bkm

#endif  // HARNESS_JUDGE_LOAD_CHECK_H_
