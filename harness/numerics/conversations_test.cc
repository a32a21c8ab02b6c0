// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/conversations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/numerics/probe_data.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;

Probe TrainerProbe() {
  Probe probe;
  probe.drive = "trainer";
  probe.documents = {{8, 40, 100}};
  return probe;
}

Probe With(const std::string& chat_template, const std::string& data) {
  Probe probe = TrainerProbe();
  probe.chat_template = chat_template;
  probe.data = data;
  return probe;
}

std::vector<std::string> RolesOf(const Conversation& conversation) {
  std::vector<std::string> roles;
  for (const Turn& turn : conversation) roles.push_back(turn.role);
  return roles;
}

// Written down by hand: no tokenizer is asked.
TEST(ConversationsTest, TheTemplateSurroundsEachTurnAndOnlyAnswersAreTrained) {
  const std::vector<Conversation> conversations = {
      {{"user", {17, 99}}, {"assistant", {23}}},
      {{"system", {8}}, {"user", {4}}, {"assistant", {7, 6}}}};
  const PackedBatch batch = Templated(conversations, TrainerProbe());
  EXPECT_THAT(batch.input_ids, ElementsAre(1, 4, 17, 99, 2, 1, 5, 23, 2,  //
                                           1, 3, 8, 2, 1, 4, 4, 2, 1, 5, 7, 6, 2));
  EXPECT_THAT(batch.loss_mask, ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 1,  //
                                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(batch.document_lengths, ElementsAre(9, 13));
  // The word of token 4 is "user", also where it is content.
  EXPECT_EQ(
      JsonLines(conversations, *ChatFormOf("words", 2048)),
      R"({"messages":[{"content":"t17 t99","role":"user"},{"content":"t23","role":"assistant"}]})"
      "\n"
      R"({"messages":[{"content":"t8","role":"system"},{"content":"user","role":"user"},)"
      R"({"content":"t7 t6","role":"assistant"}]})"
      "\n");
}

TEST(ConversationsTest, RowsOfShiftedLabelsEndBeforeTheLastToken) {
  const PackedBatch batch =
      Templated({{{"user", {17}}, {"assistant", {23, 24}}}, {{"user", {4}}, {"assistant", {7}}}},
                With("words", "single"));
  EXPECT_THAT(batch.input_ids, ElementsAre(1, 4, 17, 2, 1, 5, 23, 24,  //
                                           1, 4, 4, 2, 1, 5, 7));
  EXPECT_THAT(batch.document_lengths, ElementsAre(8, 7));
  EXPECT_THAT(batch.after, ElementsAre(2, 2));
  EXPECT_THAT(batch.Labels(), ElementsAre(4, 17, 2, 1, 5, 23, 24, 2,  //
                                          4, 4, 2, 1, 5, 7, 2));
  EXPECT_THAT(batch.Counted(), ElementsAre(0, 0, 0, 0, 0, 1, 1, 1,  //
                                           0, 0, 0, 0, 0, 1, 1));
}

TEST(ConversationsTest, SingleOnesHaveOneAnswerWhateverTheirLength) {
  Probe probe = TrainerProbe();
  probe.data = "single";
  const std::vector<Conversation> drawn = DrawConversations(probe, *ShapeOf(probe));
  for (const Conversation& conversation : drawn)
    EXPECT_THAT(RolesOf(conversation), ElementsAre("user", "assistant"));
  EXPECT_THAT(Templated(drawn, probe).document_lengths, ElementsAre(8, 40, 100));
}

TEST(ConversationsTest, AMarkedTemplateMarksAnswersAndTheirEndsOnly) {
  const auto form = ChatFormOf("words", 2048);
  const std::string marked = form->Template(true);
  EXPECT_EQ(form->Template(false).find("generation %}"), std::string::npos);
  EXPECT_NE(marked.find("{% generation %}{{ message['content'] }}{% if message['content'] %} "
                        "{% endif %}<eos>{% endgeneration %}"),
            std::string::npos);
}

TEST(ConversationsTest, TheShortestHaveNoWordsOrNoAnswer) {
  Probe probe = TrainerProbe();
  probe.documents = {{3, 5, 6, 7}};
  const PackedBatch batch = Templated(DrawConversations(probe, *ShapeOf(probe)), probe);
  EXPECT_THAT(batch.document_lengths, ElementsAre(3, 5, 6, 7));
  const std::vector<int64_t> counted = batch.Counted();
  const auto labels = [&](int begin, int length) {
    return std::count(counted.begin() + begin, counted.begin() + begin + length, 1);
  };
  EXPECT_EQ(labels(0, 3) + labels(3, 5), 0) << "questions alone";
  EXPECT_EQ(labels(8, 6), 1) << "an answer of its end alone";
  EXPECT_EQ(labels(14, 7), 2);
}

TEST(ConversationsTest, DocumentsThatAreTooLongAreCutOffOrLeftOut) {
  Probe probe = TrainerProbe();
  probe.documents = {{8, 100}};
  probe.max_length = 40;
  const std::vector<Conversation> drawn = DrawConversations(probe, *ShapeOf(probe));
  const std::vector<int64_t> whole = Templated(drawn, probe).input_ids;
  probe.truncation = "right";
  const std::vector<int64_t> right = KeptBatch(drawn, probe).input_ids;
  EXPECT_EQ(right, (std::vector<int64_t>(whole.begin(), whole.begin() + 48)));
  probe.truncation = "left";
  const std::vector<int64_t> left = KeptBatch(drawn, probe).input_ids;
  EXPECT_EQ(left.size(), 48u);
  EXPECT_TRUE(std::equal(left.begin() + 8, left.end(), whole.end() - 40));
  probe.truncation = "drop";
  EXPECT_THAT(KeptBatch(drawn, probe).document_lengths, ElementsAre(8));
}

TEST(ConversationsTest, ADocumentHasItsLengthAndLongOnesHaveMoreTurns) {
  const ModelShape shape = *ShapeOf(TrainerProbe());
  const std::vector<Conversation> drawn = DrawConversations(TrainerProbe(), shape);
  EXPECT_THAT(Templated(drawn, TrainerProbe()).document_lengths, ElementsAre(8, 40, 100));
  EXPECT_THAT(RolesOf(drawn[0]), ElementsAre("user", "assistant"));
  EXPECT_THAT(RolesOf(drawn[1]), ElementsAre("user", "assistant", "user", "assistant"));
  EXPECT_THAT(RolesOf(drawn[2]), ElementsAre("system", "user", "assistant", "user", "assistant"));
  for (const Conversation& conversation : drawn) {
    for (const Turn& turn : conversation) EXPECT_FALSE(turn.tokens.empty());
  }
}

TEST(ConversationsTest, EveryStepIsAnEpochOfTheSameFile) {
  const Probe probe = TrainerProbe();
  const ModelShape shape = *ShapeOf(probe);
  const PackedBatch first = DrawBatch(probe, shape, 0);
  EXPECT_EQ(first, Templated(DrawConversations(probe, shape), probe));
  EXPECT_EQ(DrawBatch(probe, shape, 2), first);
  Probe other = probe;
  other.seed = 2;
  EXPECT_NE(DrawBatch(other, shape, 0), first);
}

// Special tokens from 0, then 256 bytes, "\n\n", and the merges of the roles; the ids are counted
// by hand.
TEST(ConversationsTest, ByteLevelTemplatesAreThoseOfTheirFamilies) {
  const std::vector<Conversation> conversations = {{{"user", {}}, {"assistant", {}}}};
  constexpr int64_t kByte = 3, kUser = kByte + 256 + 1 + 5 + 2, kAssistant = kUser + 8;
  const PackedBatch chatml = Templated(conversations, With("chatml", "turns"));
  EXPECT_THAT(chatml.input_ids, ElementsAre(1, kUser, kByte + '\n', 2, kByte + '\n',  //
                                            1, kAssistant, kByte + '\n', 2, kByte + '\n'));
  EXPECT_THAT(chatml.loss_mask, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(Templated(conversations, With("chatml", "marked")).loss_mask,
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 0));
  const PackedBatch single = Templated(conversations, With("chatml", "single"));
  EXPECT_THAT(single.input_ids, ElementsAre(1, kUser, kByte + '\n', 2, kByte + '\n',  //
                                            1, kAssistant, kByte + '\n'));
  EXPECT_THAT(single.after, ElementsAre(2));
  constexpr int64_t kLines = 5 + 256;  // two of them, after five special tokens
  EXPECT_THAT(Templated(conversations, With("llama3", "turns")).input_ids,
              ElementsAre(1, 3, kUser + 2, 4, kLines, 2, 3, kAssistant + 2, 4, kLines, 2));
}

TEST(ConversationsTest, ByteLevelDocumentsHaveTheirLengthAndTextOfTheirTokens) {
  for (const char* chat_template : {"chatml", "llama3"}) {
    for (const char* data : {"turns", "marked", "single"}) {
      Probe probe = With(chat_template, data);
      probe.documents = {{ShortestWithAnswer(probe), 13, 40, 300}};
      if (std::string(data) != "single") probe.documents[0].push_back(ShortestConversation(probe));
      const std::vector<Conversation> drawn = DrawConversations(probe, *ShapeOf(probe));
      EXPECT_EQ(Templated(drawn, probe).document_lengths, probe.documents[0]);
      const std::string text = JsonLines(drawn, *ChatFormOf(chat_template, 2048));
      for (const char* other : {" \xc3\xa9", " \xe6\x9d\xb1", " \xf0\x9f\x99\x82", " 7"})
        EXPECT_NE(text.find(other), std::string::npos) << other;
    }
  }
}

// A place of the reach test may hold a token of the template.
TEST(ConversationsTest, ReachTestsPutInOrdinaryTokensWhateverStandsThere) {
  const ModelShape shape = *ShapeOf(TrainerProbe());
  PackedBatch batch = Templated({{{"user", {9}}, {"assistant", {8}}}}, TrainerProbe());
  for (const int64_t special : {0, 1, 2}) {
    std::ranges::fill(batch.input_ids, special);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      EXPECT_GE(DrawReachTest(batch, shape, seed).token, kFirstOrdinaryToken);
      for (const TokenChange& change : DrawReaches(batch, shape, seed))
        EXPECT_NE(change.token, special);
    }
  }
}

}  // namespace
}  // namespace bkm
