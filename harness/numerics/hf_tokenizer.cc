// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/hf_tokenizer.h"

#include "absl/strings/str_cat.h"
#include "harness/numerics/conversations.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

constexpr const char* kSpecialTokens[] = {"<pad>", "<bos>", "<eos>"};
static_assert(std::size(kSpecialTokens) == kFirstOrdinaryToken);

}  // namespace

OrderedJson HfTokenizer(int64_t vocabulary, bool has_roles) {
  OrderedJson added = OrderedJson::array();
  OrderedJson vocab = OrderedJson::object();
  for (int64_t id = 0; id < vocabulary; ++id) {
    if (id >= kFirstOrdinaryToken) {
      vocab[has_roles ? ChatWord(id) : absl::StrCat("t", id)] = id;
      continue;
    }
    vocab[kSpecialTokens[id]] = id;
    added.push_back({{"id", id},
                     {"content", kSpecialTokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", kSpecialTokens[0]}}}};
}

OrderedJson HfTokenizerConfig() {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"pad_token", kSpecialTokens[0]},
          {"unk_token", kSpecialTokens[0]},
          {"bos_token", kSpecialTokens[1]},
          {"eos_token", kSpecialTokens[kEosToken]},
          {"add_bos_token", false},
          {"add_eos_token", false},
          {"clean_up_tokenization_spaces", false},
          {"model_max_length", kMaxPositions}};
}

}  // namespace bkm
