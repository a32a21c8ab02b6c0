// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_CHAT_FORM_H_
#define HARNESS_NUMERICS_CHAT_FORM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/numerics/counter_generator.h"

namespace bkm {

// A tokenizer with a chat template (Probe::chat_template): its files, and the tokens that both make
// of a turn, which are written down here and asked of no tokenizer.
class ChatForm {
 public:
  virtual ~ChatForm() = default;

  virtual std::vector<int64_t> BeforeFirst() const = 0;  // of a document
  virtual std::vector<int64_t> BeforeContent(const std::string& role) const = 0;
  virtual std::vector<int64_t> AfterContent() const = 0;  // begins with the end token
  // Tokens whose text has this one tokenization. `drawn` counts the draws.
  virtual std::vector<int64_t> DrawContent(int64_t length, const CounterStream& stream,
                                           uint64_t& drawn) const = 0;
  virtual std::string TextOf(const std::vector<int64_t>& content) const = 0;

  // A Jinja template. `marks_answers`: answers and their end tokens stand in a generation block
  // (transformers' apply_chat_template, return_assistant_tokens_mask).
  virtual std::string Template(bool marks_answers) const = 0;
  virtual OrderedJson TokenizerJson() const = 0;
  virtual OrderedJson TokenizerConfig() const = 0;  // without the template
};

// "words", "chatml" or "llama3".
std::unique_ptr<ChatForm> ChatFormOf(const std::string& chat_template, int64_t vocabulary);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_CHAT_FORM_H_
