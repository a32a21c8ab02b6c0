// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_HF_CONFIG_H_
#define HARNESS_NUMERICS_HF_CONFIG_H_

#include "harness/base/json.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {

// HF's config.json, in a form that transformers 4 and 5 read alike.
OrderedJson HfConfig(const ModelShape& shape);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_HF_CONFIG_H_
