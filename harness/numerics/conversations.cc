// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/conversations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/json.h"
#include "harness/model/dealing.h"
#include "harness/numerics/counter_generator.h"

namespace bkm {
namespace {

// Of each turn beside its words: <bos>, the role and <eos>.
constexpr int64_t kTokensAroundWords = 3;
constexpr int64_t kTokensForTwoAnswers = 40;
constexpr int64_t kTokensForASystem = 100;

int64_t TokenOfRole(const std::string& role) {
  const std::vector<std::string>& roles = ChatRoles();
  return kFirstOrdinaryToken + (std::find(roles.begin(), roles.end(), role) - roles.begin());
}

Conversation RolesFor(int64_t length, bool is_single) {
  Conversation turns;
  if (!is_single && length >= kTokensForASystem) turns.push_back({"system", {}});
  for (int answers = !is_single && length >= kTokensForTwoAnswers ? 2 : 1; answers > 0; --answers) {
    turns.push_back({"user", {}});
    if (length >= kShortestWithAnswer) turns.push_back({"assistant", {}});
  }
  return turns;
}

}  // namespace

std::string ChatTemplate(const std::string& data) {
  constexpr char kEnd[] = "{% endfor %}{% if add_generation_prompt %}<bos> assistant {% endif %}";
  constexpr char kBegin[] = "{% for message in messages %}<bos> {{ message['role'] }} ";
  if (data != "marked") return absl::StrCat(kBegin, "{{ message['content'] }} <eos> ", kEnd);
  return absl::StrCat(kBegin,
                      "{% if message['role'] == 'assistant' %}{% generation %}"
                      // A mark begins with a token: what stands before one may be none.
                      "{{ message['content'] }}{% if message['content'] %} {% endif %}<eos>"
                      "{% endgeneration %} {% else %}"
                      "{{ message['content'] }} <eos> {% endif %}",
                      kEnd);
}

const std::vector<std::string>& ChatRoles() {
  static const auto& roles = *new std::vector<std::string>{"system", "user", "assistant"};
  return roles;
}

std::string ChatWord(int64_t token) {
  const auto role = static_cast<size_t>(token - kFirstOrdinaryToken);
  return role < ChatRoles().size() ? ChatRoles()[role] : absl::StrCat("t", token);
}

std::vector<Conversation> DrawConversations(const Probe& probe, const ModelShape& shape) {
  const CounterStream stream(probe.seed, "conversations");
  uint64_t drawn = 0;
  std::vector<Conversation> conversations;
  const bool is_single = probe.data == "single";
  for (int64_t length : probe.documents.front()) {
    if (is_single) ++length;
    Conversation turns = RolesFor(length, is_single);
    const auto count = static_cast<int64_t>(turns.size());
    const int64_t words = length - count * kTokensAroundWords;
    for (int64_t turn = 0; turn < count; ++turn) {
      int64_t own = words / count;
      if (turn == count - 1) own += words % count;
      for (; own > 0; --own) {
        turns[turn].tokens.push_back(kFirstOrdinaryToken +
                                     stream.Below(shape.vocabulary - kFirstOrdinaryToken, drawn++));
      }
    }
    conversations.push_back(std::move(turns));
  }
  return conversations;
}

PackedBatch Templated(const std::vector<Conversation>& conversations, const std::string& data) {
  PackedBatch batch;
  for (const Conversation& conversation : conversations) {
    const size_t begin = batch.input_ids.size();
    const auto add = [&](int64_t token, bool counts) {
      batch.input_ids.push_back(token);
      batch.loss_mask.push_back(counts ? 1 : 0);
    };
    for (const Turn& turn : conversation) {
      const bool counts = turn.role == "assistant";
      add(kBosToken, false);
      add(TokenOfRole(turn.role), false);
      for (const int64_t token : turn.tokens) add(token, counts);
      add(kEosToken, counts);
    }
    if (data == "single") {
      batch.after.push_back(batch.input_ids.back());
      batch.input_ids.pop_back();
      batch.loss_mask.pop_back();
    }
    batch.document_lengths.push_back(static_cast<int64_t>(batch.input_ids.size() - begin));
  }
  return batch;
}

PackedBatch KeptBatch(const std::vector<Conversation>& conversations, const Probe& probe) {
  const PackedBatch all = Templated(conversations, probe.data).Of(KeptDocuments(probe));
  const std::vector<int64_t> lengths = KeptLengths(probe);
  PackedBatch kept;
  int64_t begin = 0;
  for (size_t d = 0; d < lengths.size(); ++d) {
    const int64_t whole = all.document_lengths[d];
    const int64_t first = begin + (probe.truncation == "left" ? whole - lengths[d] : 0);
    const auto append = [&](const std::vector<int64_t>& from, std::vector<int64_t>& to) {
      to.insert(to.end(), from.begin() + first, from.begin() + first + lengths[d]);
    };
    append(all.input_ids, kept.input_ids);
    append(all.loss_mask, kept.loss_mask);
    kept.document_lengths.push_back(lengths[d]);
    begin += whole;
  }
  kept.after = all.after;
  return kept;
}

std::string JsonLines(const std::vector<Conversation>& conversations) {
  std::string lines;
  for (const Conversation& conversation : conversations) {
    Json messages = Json::array();
    for (const Turn& turn : conversation) {
      const std::string content = absl::StrJoin(
          turn.tokens, " ",
          [](std::string* out, int64_t token) { absl::StrAppend(out, ChatWord(token)); });
      messages.push_back({{"role", turn.role}, {"content", content}});
    }
    absl::StrAppend(&lines, ToLine(Json{{"messages", messages}}), "\n");
  }
  return lines;
}

}  // namespace bkm
