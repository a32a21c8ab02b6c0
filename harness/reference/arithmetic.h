// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_ARITHMETIC_H_
#define HARNESS_REFERENCE_ARITHMETIC_H_

#include <c10/core/ScalarType.h>

#include <string>

#include "harness/numerics/reductions.h"

namespace bkm {

// The types in which a model computes: one way in which a right implementation may round. Sums
// inside norms, softmax and matrix products are always at least fp32, as in all common kernels.
struct Arithmetic {
  std::string name;
  c10::ScalarType master;       // weights between steps, their gradients, AdamW
  c10::ScalarType parameters;   // weights in forward and backward
  c10::ScalarType elementwise;  // results of norms, RoPE and the residual stream
  c10::ScalarType matmul;       // operands and results of projections and attention
  c10::ScalarType log_probs;    // results of log-softmax and terms of the loss
  Reductions reductions;        // the sums that ranks divide among them

  // The type inside norms and softmax and of RoPE's angles.
  c10::ScalarType inner() const { return elementwise == c10::kDouble ? c10::kDouble : c10::kFloat; }
};

// The golden: everything in fp64.
inline Arithmetic ExactArithmetic() {
  return {"fp64", c10::kDouble, c10::kDouble, c10::kDouble, c10::kDouble, c10::kDouble};
}

}  // namespace bkm

#endif  // HARNESS_REFERENCE_ARITHMETIC_H_
