// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_HF_TOKENIZER_H_
#define HARNESS_NUMERICS_HF_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace bkm {

// tokenizer.json of the smallest tokenizer that HF and torchtitan load: text split at white space,
// 0 <pad> (also for unknown words), 1 <bos>, 2 <eos>, then `words`.
OrderedJson HfTokenizer(const std::vector<std::string>& words);
// The words t3, t4, ... up to `vocabulary` tokens, for a probe that tokenizes no text: libraries
// require a tokenizer.
std::vector<std::string> NumberedWords(int64_t vocabulary);

// The field of a tokenizer.json for special tokens, whose ids count from 0.
OrderedJson AddedTokens(const std::vector<std::string>& specials);

// tokenizer_config.json beside it.
OrderedJson HfTokenizerConfig();

}  // namespace bkm

#endif  // HARNESS_NUMERICS_HF_TOKENIZER_H_
