// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_HF_CONFIG_H_
#define HARNESS_NUMERICS_HF_CONFIG_H_

#include <string>

#include "harness/base/json.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {

// HF's config.json. By default in a form that transformers 4 and 5 read alike; `rope_keys` is
// Probe::rope_keys, and `type` the type of the weights as torch names it.
OrderedJson HfConfig(const ModelShape& shape, const std::string& rope_keys = "both",
                     const std::string& type = "float32");

}  // namespace bkm

#endif  // HARNESS_NUMERICS_HF_CONFIG_H_
