// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_HF_TOKENIZER_H_
#define HARNESS_NUMERICS_HF_TOKENIZER_H_

#include <cstdint>

#include "harness/base/json.h"

namespace bkm {

// tokenizer.json of the smallest tokenizer that HF and torchtitan load: `vocabulary` words split at
// white space, 0 <pad> (also for unknown words), 1 <bos>, 2 <eos>, then t3, t4, ... A probe never
// tokenizes text, but libraries require a tokenizer.
// `has_roles`: the first ordinary words are the roles of a chat template (conversations.h).
OrderedJson HfTokenizer(int64_t vocabulary, bool has_roles = false);

// tokenizer_config.json beside it.
OrderedJson HfTokenizerConfig();

}  // namespace bkm

#endif  // HARNESS_NUMERICS_HF_TOKENIZER_H_
