// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/conversations.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/model/dealing.h"
#include "harness/numerics/counter_generator.h"

namespace bkm {
namespace {

constexpr int64_t kTokensForTwoAnswers = 40;
constexpr int64_t kTokensForASystem = 100;
// Of a roll-out's old log-probs or values: some are clipped on either side, most are not.
constexpr double kOldDeviation = 0.3;

// `length`: of the conversation without what stands before its first turn.
Conversation RolesFor(int64_t length, const Probe& probe) {
  const bool is_single = probe.data == "single";
  const int64_t turn = ChatLengthsOf(probe.chat_template).turn;
  Conversation turns;
  if (!is_single && length >= kTokensForASystem) turns.push_back({"system", {}});
  for (int answers = !is_single && length >= kTokensForTwoAnswers ? 2 : 1; answers > 0; --answers) {
    turns.push_back({"user", {}});
    if (length >= 2 * turn) turns.push_back({"assistant", {}});
  }
  return turns;
}

// A fresh model's log-probs are near that of one token in all, and its values near zero. Rounded,
// so that no math library can change a bit.
PackedBatch::Rollout DrawRollout(const Probe& probe, int64_t tokens) {
  const CounterStream old(probe.seed, "rollout/old"), credit(probe.seed, "rollout/credit");
  const double mean =
      probe.head == "lm"
          ? -std::round(100 * std::log(static_cast<double>(ShapeOf(probe)->vocabulary))) / 100
          : 0;
  PackedBatch::Rollout rollout;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto noise = static_cast<float>(old.NormalLike(kOldDeviation, t));
    rollout.old.push_back(static_cast<float>(mean + static_cast<double>(noise)));
    rollout.credit.push_back(static_cast<float>(credit.NormalLike(1, t)));
  }
  return rollout;
}

}  // namespace

std::vector<Conversation> DrawConversations(const Probe& probe, const ModelShape& shape) {
  const CounterStream stream(probe.seed, "conversations");
  const auto form = ChatFormOf(probe.chat_template, shape.vocabulary);
  const ChatLengths around = ChatLengthsOf(probe.chat_template);
  uint64_t drawn = 0;
  std::vector<Conversation> conversations;
  for (int64_t length : probe.documents.front()) {
    if (probe.data == "single") length += 1 + around.trailing;
    length -= around.document;
    Conversation turns = RolesFor(length, probe);
    const auto count = static_cast<int64_t>(turns.size());
    const int64_t words = length - count * around.turn;
    for (int64_t turn = 0; turn < count; ++turn) {
      const int64_t own = words / count + (turn == count - 1 ? words % count : 0);
      turns[turn].tokens = form->DrawContent(own, stream, drawn);
    }
    conversations.push_back(std::move(turns));
  }
  return conversations;
}

PackedBatch Templated(const std::vector<Conversation>& conversations, const Probe& probe) {
  const auto form = ChatFormOf(probe.chat_template, ShapeOf(probe)->vocabulary);
  const int64_t trailing = ChatLengthsOf(probe.chat_template).trailing;
  PackedBatch batch;
  for (const Conversation& conversation : conversations) {
    const size_t begin = batch.input_ids.size();
    const auto add = [&](const std::vector<int64_t>& tokens, bool counts) {
      batch.input_ids.insert(batch.input_ids.end(), tokens.begin(), tokens.end());
      batch.loss_mask.resize(batch.input_ids.size(), counts ? 1 : 0);
    };
    add(form->BeforeFirst(), false);
    for (const Turn& turn : conversation) {
      const bool counts = turn.role == "assistant";
      std::vector<int64_t> end = form->AfterContent(), after(end.end() - trailing, end.end());
      end.resize(end.size() - trailing);
      add(form->BeforeContent(turn.role), false);
      add(turn.tokens, counts);
      add(end, counts);
      add(after, counts && probe.data != "marked");
    }
    if (probe.data == "single") {
      batch.input_ids.resize(batch.input_ids.size() - trailing);
      batch.after.push_back(batch.input_ids.back());
      batch.input_ids.pop_back();
      batch.loss_mask.resize(batch.input_ids.size());
    }
    batch.document_lengths.push_back(static_cast<int64_t>(batch.input_ids.size() - begin));
  }
  return batch;
}

PackedBatch KeptBatch(const std::vector<Conversation>& conversations, const Probe& probe) {
  const PackedBatch all = Templated(conversations, probe).Of(KeptDocuments(probe));
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
  if (probe.objective == "ppo") kept.rollout = DrawRollout(probe, std::ssize(kept.input_ids));
  return kept;
}

std::string JsonLines(const std::vector<Conversation>& conversations, const ChatForm& form) {
  std::string lines;
  for (const Conversation& conversation : conversations) {
    Json messages = Json::array();
    for (const Turn& turn : conversation)
      messages.push_back({{"role", turn.role}, {"content", form.TextOf(turn.tokens)}});
    absl::StrAppend(&lines, ToLine(Json{{"messages", messages}}), "\n");
  }
  return lines;
}

}  // namespace bkm
