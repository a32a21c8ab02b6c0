// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_CONVERSATIONS_H_
#define HARNESS_NUMERICS_CONVERSATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/probe.h"
#include "harness/numerics/chat_form.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// The dataset of a trainer: conversations, and what a trainer has to make of them. The tokens are
// computed here from words and template alone, and by no tokenizer.

struct Turn {
  std::string role;  // "system", "user" or "assistant"
  std::vector<int64_t> tokens;
};
using Conversation = std::vector<Turn>;

// One for each document of the probe's first layout, of as many tokens (of "single" one more, which
// is no input): a question and an answer; unless they are single, longer ones have two of each, the
// longest begin with a turn of the system, and the shortest have no answer, or turns without words.
std::vector<Conversation> DrawConversations(const Probe& probe, const ModelShape& shape);

// The conversations in the order of the file, packed, as Probe::data and Probe::chat_template say.
// The words and the end of each answer count in the loss, the template's beginning of it does not.
// What a template writes after an end token counts unless answers are marked.
PackedBatch Templated(const std::vector<Conversation>& conversations, const Probe& probe);

// What a trainer makes of the conversations: the documents that it keeps (KeptDocuments), cut off
// at max_length tokens.
PackedBatch KeptBatch(const std::vector<Conversation>& conversations, const Probe& probe);

// JSON lines of {"messages": [{"role": ..., "content": ...}]}.
std::string JsonLines(const std::vector<Conversation>& conversations, const ChatForm& form);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_CONVERSATIONS_H_
