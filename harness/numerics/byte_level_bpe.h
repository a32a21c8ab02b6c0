// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_BYTE_LEVEL_BPE_H_
#define HARNESS_NUMERICS_BYTE_LEVEL_BPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/numerics/counter_generator.h"

namespace bkm {

// A byte-level BPE vocabulary with merges, as Qwen's and Llama 3's, whose words are drawn before
// they are text: that text has one tokenization, the drawn one, which no tokenizer need be asked
// for. A word is a space and letters that no role has, and every beginning of a word is a token, so
// merges go from left to right; all else is bytes.
class ByteLevelBpe {
 public:
  // Ids: `specials` from 0, then the 256 bytes, "\n\n", the beginnings of `roles`, and words up to
  // `vocabulary` tokens, shorter ones first.
  ByteLevelBpe(std::vector<std::string> specials, const std::vector<std::string>& roles,
               int64_t vocabulary);

  // The id of a token by the bytes that it stands for; it must be one.
  int64_t IdOf(const std::string& bytes) const;
  // What the tokens stand for.
  std::string TextOf(const std::vector<int64_t>& tokens) const;

  // Content of a turn: a letter, then words, and now and then what only bytes express (accents,
  // ideograms, emoji, digits). `drawn` counts the draws.
  std::vector<int64_t> DrawContent(int64_t length, const CounterStream& stream,
                                   uint64_t& drawn) const;

  // Each token, by id, as files spell it (GPT-2's bytes_to_unicode), and the merges, best first.
  const std::vector<std::string>& spelled() const { return spelled_; }
  const std::vector<std::pair<std::string, std::string>>& merges() const { return merges_; }

 private:
  void Merge(const std::string& left, const std::string& right);

  int64_t first_byte_;
  int64_t first_word_;
  std::vector<std::string> bytes_;    // of each token
  std::vector<std::string> spelled_;  // of each token
  std::vector<std::pair<std::string, std::string>> merges_;
};

}  // namespace bkm

#endif  // HARNESS_NUMERICS_BYTE_LEVEL_BPE_H_
