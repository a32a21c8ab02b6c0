// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_REDUCTIONS_H_
#define HARNESS_NUMERICS_REDUCTIONS_H_

#include <string>

#include "harness/model/layout.h"

namespace bkm {

// The sums that a layout divides among ranks: each rank rounds its own part, and the parts are
// added. 1: a sum is in one part.
struct Reductions {
  // Gradients of parameters, over a step's documents. A rank with a part of a document's tokens
  // counts as one with documents of its own.
  int documents = 1;
  // Gradients of keys and values, over queries: context parallelism.
  int queries = 1;
  // Products with a weight whose inputs are divided, and the gradients of the inputs of one whose
  // outputs are divided: tensor parallelism (Shoeybi et al. 2019).
  int features = 1;
  bool operator==(const Reductions&) const = default;
};

Reductions ReductionsOf(const Layout& layout);

// "documents=2+features=2"; empty if no sum is divided.
std::string ReductionsText(const Reductions& reductions);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_REDUCTIONS_H_
