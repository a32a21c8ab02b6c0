// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/attention_story.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

Json Parse(const char* text) { return Json::parse(text); }

TEST(AttentionStoryTest, NothingSeenSaysNothing) {
  EXPECT_EQ(AttentionStory(Json::object(), {}), "");
  EXPECT_EQ(AttentionStory(Json(), {}), "");
}

TEST(AttentionStoryTest, NamesTheKernelsAndTheOwnersOfMasks) {
  const Json observation = Parse(R"({
    "backend": {"layers": [{"class": "FlexAttention"}, {"class": "FlexAttention"}],
                "kernels": [{"layer": 0, "forward": ["flex_attention"], "backward": ["FlexBackward"]},
                            {"layer": 1, "forward": ["aten::bmm"], "backward": []}]},
    "mask": {"calls": [{"type": "BlockMask", "owner": "caller"},
                       {"type": "BlockMask", "owner": "caller"}, {"type": "NoneType"}],
             "attended": [{"layer": 0, "relation": "ab"}, {"layer": 1, "relation": "ab"}]}})");
  EXPECT_EQ(AttentionStory(observation, MaskFacts{.attended = MaskFacts::Attended{2, 0}}),
            "  attention built: FlexAttention x 2\n"
            "  attention dispatched, forward: aten::bmm x 1, flex_attention x 1\n"
            "  attention dispatched, backward: FlexBackward x 1, nothing x 1\n"
            "  masks received: BlockMask of caller x 2, NoneType x 1\n"
            "  who attends to whom, measured in 2 layers: 1 relation, as requested\n");
}

TEST(AttentionStoryTest, DrawsTheRelationThatWasNotRequested) {
  const Json observation = Parse(R"({"mask": {"attended": [{"layer": 0, "relation": "ab"},
                                                           {"layer": 1, "relation": "cd"}]}})");
  const MaskFacts facts = {.attended = MaskFacts::Attended{2, 1},
                           .layers = {{.layer = 1,
                                       .fault = "window",
                                       .extra = 7,
                                       .missing = 0,
                                       .window = "none",
                                       .asked = "5 tokens"}},
                           .picture = {"\\.", "#\\"}};
  EXPECT_EQ(AttentionStory(observation, facts),
            "  who attends to whom, measured in 2 layers: 2 relations, not as requested in 1\n"
            "    layer 1: window, none (requested: 5 tokens), 7 extra pairs, 0 missing\n"
            "    first of these layers, by documents of queries (rows) and keys (columns): "
            "\\ causal, # all, . none, + some\n"
            "      0  \\ .\n"
            "      1  # \\\n");
}

TEST(AttentionStoryTest, SaysWhyTheRelationIsUnknown) {
  EXPECT_EQ(AttentionStory(Parse(R"({"mask": {"attended_error": "layer 0: no"}})"), MaskFacts()),
            "  who attends to whom is unknown: layer 0: no\n");
}

}  // namespace
}  // namespace bkm
