// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/hf_tokenizer.h"

#include "absl/strings/str_cat.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

constexpr const char* kSpecialTokens[] = {"<pad>", "<bos>", "<eos>"};
static_assert(std::size(kSpecialTokens) == kFirstOrdinaryToken);

}  // namespace

OrderedJson AddedTokens(const std::vector<std::string>& specials) {
  OrderedJson added = OrderedJson::array();
  for (const std::string& special : specials) {
    added.push_back({{"id", added.size()},
                     {"content", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

std::vector<std::string> NumberedWords(int64_t vocabulary) {
  std::vector<std::string> words;
  for (int64_t id = kFirstOrdinaryToken; id < vocabulary; ++id)
    words.push_back(absl::StrCat("t", id));
  return words;
}

OrderedJson HfTokenizer(const std::vector<std::string>& words) {
  OrderedJson vocab = OrderedJson::object();
  for (const char* special : kSpecialTokens) vocab[special] = vocab.size();
  for (const std::string& word : words) vocab[word] = vocab.size();
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", AddedTokens({std::begin(kSpecialTokens), std::end(kSpecialTokens)})},
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
