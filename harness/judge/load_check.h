// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_LOAD_CHECK_H_
#define HARNESS_JUDGE_LOAD_CHECK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// The norm, sum and size of a weight, in fp64.
ObservedTensor Measure(const std::vector<float>& values);

// How many elements the parameters of a model have beyond those of its file.
int64_t ElementsBeyond(const std::optional<ObservedTensor>& held,
                       const std::map<std::string, ObservedTensor>& file);

// Whether each parameter after loading equals the one in the file. In fp32, norm and sum must agree
// to 1e-6 of the norm. An engine that ran bf16 may have rounded each element by up to 2^-8 of
// itself, without bias: norms must agree to 2^-8, and sums, whose rounding errors add up as a
// random walk, to 2^-6 of the norm. Another draw of the same distribution differs in its sum by
// about 1.4 norms; a tensor left at its initial value differs by more.
//
// Parameters of the file that were not observed under their names (the library's mapping does not
// name them) are judged together: the rest of the model, if it has as many elements, must have
// their norm and sum. Neither measure depends on the order of elements or on how they are split
// into tensors.
//
// A model with more parameters than the file has is wrong, too: nothing loads them, or a head that
// should be tied to the embedding is another tensor, which learns by itself. So is a mapping that
// gives a parameter a name that the file lacks, beside its own: who takes the weights over does not
// know it. The cell does not report names of buffers and of tied tensors that the file lacks.
//
// The check belongs to the stage `golden`, not `load`: `load` is where loading raises. A cell that
// silently loaded nothing fails where its numbers fail, with weights-not-loaded as the reason.
CheckResult CheckLoad(const std::map<std::string, ObservedTensor>& loaded,
                      const std::optional<ObservedTensor>& held,
                      const std::map<std::string, ObservedTensor>& file,
                      absl::string_view precision_ran);

// Whether each buffer that the file has (`file`) was loaded, such as deepseek_v3's correction of
// experts' scores: with the tolerances of CheckLoad.
CheckResult CheckBuffers(const std::map<std::string, ObservedTensor>& loaded,
                         const std::map<std::string, ObservedTensor>& file,
                         absl::string_view precision_ran);

}  // namespace bkm

#endif  // HARNESS_JUDGE_LOAD_CHECK_H_
