// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/kernel_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "harness/judge/testing_kernel_calls.h"
#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const DocumentLengths kDocuments = {40, 1, 60};

NeededCalls Needed(const DocumentLengths& documents = kDocuments) {
  return {*FindModelShape("gemma2"), "bfloat16", {documents}};
}

// What is said of calls, one for each of `of_calls`, of layer 0.
std::vector<std::string> SaidOf(const std::vector<ObservedKernelCalls>& calls,
                                const NeededCalls& needed = Needed()) {
  ObservedBackend seen;
  seen.kernel_calls = calls;
  std::vector<std::string> said;
  for (const ObservedGpuDifference& difference : CallDifferences(seen, needed))
    said.push_back(difference.what);
  return said;
}

// The same of one right call that `change` changes.
std::vector<std::string> SaidOfChanged(const std::function<void(ObservedKernelCalls&)>& change) {
  ObservedKernelCalls call = RightCall(0, 0, kDocuments);
  change(call);
  return SaidOf({call});
}

// Takes both borders.
std::vector<std::string> SaidOfBorders(const std::vector<int64_t>& borders) {
  return SaidOfChanged([&](ObservedKernelCalls& call) {
    call.query_borders = call.key_borders = borders;
    call.query_shape[0] = call.key_shape[0] = 101;
    call.longest_query = call.longest_key = 101;
  });
}

TEST(CallDifferencesTest, RightCallHasNone) {
  for (const int64_t layer : {0, 1})
    EXPECT_THAT(SaidOf({RightCall(layer, 0, kDocuments)}), IsEmpty());
}

TEST(CallDifferencesTest, EachArgumentOfTheModelIsCompared) {
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.softcap = 50; }),
              ElementsAre("softcap is 50, and in the model 2.5"));
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.scale = 0.125; }),
              ElementsAre(HasSubstr("softmax_scale is 0.125, and in the model 0.204")));
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.dropout = 0.1; }),
              ElementsAre("dropout_p is 0.1"));
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.dtype = "float16"; }),
              ElementsAre("q is float16, not bfloat16"));
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.causal = false; }),
              ElementsAre("a token sees the tokens after it"));
  EXPECT_THAT(SaidOfChanged([](auto& call) {
                call.causal = false;
                call.window[1] = 0;
              }),
              IsEmpty());
}

TEST(CallDifferencesTest, WindowIsThatOfTheLayer) {
  EXPECT_THAT(
      SaidOfChanged([](auto& call) {
        call.window = {32, 32};
      }),
      ElementsAre("a token sees 32 tokens before it, and in the model 31 tokens before it"));
  EXPECT_THAT(SaidOfChanged([](auto& call) {
                call.window = {-1, -1};
              }),
              ElementsAre(HasSubstr("a token sees all tokens before it")));
  ObservedKernelCalls without = RightCall(1, 0, kDocuments);
  without.window = {31, 31};
  EXPECT_THAT(SaidOf({without}), ElementsAre(HasSubstr("in the model all tokens before it")));
  without.window = {59, 59};  // of 60 tokens the last one sees all
  EXPECT_THAT(SaidOf({without}), IsEmpty());
}

TEST(CallDifferencesTest, YarnsFactorMayBeInTheScaleOrInTheSines) {
  NeededCalls needed = Needed();
  needed.shape = *FindModelShape("deepseek_v3");
  ObservedKernelCalls call = RightCall(1, 0, kDocuments);
  call.softcap = 0;
  const double scale = needed.shape.SoftmaxScale();
  for (const double right : {scale, scale * RopeSoftmaxFactor(needed.shape.rope)}) {
    call.scale = right;
    EXPECT_THAT(SaidOf({call}, needed), IsEmpty());
  }
  call.scale = scale * 1.01;
  EXPECT_THAT(SaidOf({call}, needed), ElementsAre(HasSubstr("softmax_scale is")));
}

TEST(CallDifferencesTest, EachDocumentIsOneSequence) {
  EXPECT_THAT(SaidOfBorders({0, 40, 41, 101}), IsEmpty());
  EXPECT_THAT(SaidOfBorders({0, 40, 101}),
              ElementsAre("not each document is one sequence: the documents have 40, 1, 60 tokens, "
                          "the sequences of the first call 40, 61 tokens"));
  for (const auto& wrong : std::vector<std::vector<int64_t>>{
           {0, 101}, {0, 41, 42, 101}, {0, 39, 40, 101}, {0, 40, 41, 70, 101}})
    EXPECT_EQ(SaidOfBorders(wrong).size(), 1);
}

TEST(CallDifferencesTest, PaddingMayFollowADocumentOrStandAlone) {
  for (const auto& borders : std::vector<std::vector<int64_t>>{{0, 40, 41, 105},
                                                               {0, 40, 41, 101, 105},
                                                               {0, 40, 41, 101, 102, 103, 105},
                                                               {0, 40, 40, 41, 101, 105, 105}}) {
    ObservedKernelCalls call = RightCall(0, 0, kDocuments);
    call.query_borders = call.key_borders = borders;
    call.query_shape[0] = call.key_shape[0] = 105;
    call.longest_query = call.longest_key = 64;
    EXPECT_THAT(SaidOf({call}), IsEmpty());
  }
  // One row for each document, without borders.
  ObservedKernelCalls rows = RightCall(0, 0, kDocuments);
  rows.query_borders = rows.key_borders = {};
  rows.query_shape = rows.key_shape = {3, 60, 8, 64};
  EXPECT_THAT(SaidOf({rows}), IsEmpty());
  rows.query_shape = rows.key_shape = {1, 101, 8, 64};
  EXPECT_THAT(SaidOf({rows}), ElementsAre(HasSubstr("the sequences of the first call 101 tokens")));
}

TEST(CallDifferencesTest, MicroBatchesTogetherHoldEachDocumentOnce) {
  const DocumentLengths first = {40, 1}, second = {60};
  NeededCalls needed = Needed();
  needed.micro_batches = 2;
  EXPECT_THAT(SaidOf({RightCall(0, 0, first), RightCall(0, 0, second)}, needed), IsEmpty());
  // An engine may balance them.
  EXPECT_THAT(SaidOf({RightCall(0, 0, {40}), RightCall(0, 0, {1, 60})}, needed), IsEmpty());
  // A checkpointed layer is called twice.
  std::vector<ObservedKernelCalls> twice = {RightCall(0, 0, first), RightCall(0, 0, second)};
  for (ObservedKernelCalls& call : twice) call.calls = {2};
  EXPECT_THAT(SaidOf(twice, needed), IsEmpty());
  EXPECT_EQ(SaidOf({RightCall(0, 0, first), RightCall(0, 0, first)}, needed).size(), 1);
  // Micro-batches of as many tokens, with the borders of the first in both.
  needed.documents = {{40, 1, 30, 11}};
  EXPECT_THAT(SaidOf({RightCall(0, 0, {40, 1}), RightCall(0, 0, {30, 11})}, needed), IsEmpty());
  EXPECT_EQ(SaidOf({RightCall(0, 0, {40, 1}), RightCall(0, 0, {40, 1})}, needed).size(), 1);
  needed.documents = {{20, 20, 20, 20}};
  EXPECT_THAT(SaidOf({RightCall(0, 0, {20, 20}), RightCall(0, 0, {20, 20})}, needed), IsEmpty());
}

TEST(CallDifferencesTest, ContractOfTheKernel) {
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.longest_query = 59; }),
              ElementsAre("max_seqlen_q is 59, and the longest sequence has 60 tokens"));
  EXPECT_THAT(SaidOfChanged([](auto& call) { call.query_shape[0] = call.key_shape[0] = 104; }),
              ElementsAre("cu_seqlens_q ends at 101, and there are 104 tokens",
                          "cu_seqlens_k ends at 101, and there are 104 tokens"));
  EXPECT_THAT(SaidOfChanged([](auto& call) {
                call.key_borders = {0, 41, 42, 101};
              }),
              ElementsAre("cu_seqlens_k is not cu_seqlens_q"));
  EXPECT_THAT(SaidOfChanged([](auto& call) {
                call.query_borders = {1, 0, 101};
              }),
              Contains(std::string("cu_seqlens_q does not rise from 0")));
}

TEST(CallDifferencesTest, HostileNumbersAreHarmless) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  ObservedKernelCalls call = RightCall(0, 0, kDocuments);
  call.query_borders = call.key_borders = {};
  call.query_shape = call.key_shape = {most, most, 1, 1};
  EXPECT_THAT(SaidOf({call}), IsEmpty());  // each document may be in a padded row
  call.query_shape = {-1, -5, 0, 0};
  call.key_shape = {};
  EXPECT_FALSE(SaidOf({call}).empty());
  call.window = {most};
  call.query_borders = {0, most, 5};
  EXPECT_FALSE(SaidOf({call}).empty());
}

TEST(UnreadCallsTest, NamesTheFirstLayerAndStep) {
  ObservedBackend seen;
  EXPECT_EQ(UnreadCalls(seen, Needed()), "layer 0, step 1");
  for (int64_t layer = 0; layer < 4; ++layer)
    seen.kernel_calls.push_back(RightCall(layer, 0, kDocuments));
  EXPECT_EQ(UnreadCalls(seen, Needed()), "");
  seen.kernel_calls.back().step.reset();
  EXPECT_EQ(UnreadCalls(seen, Needed()), "layer 3, step 1");
}

}  // namespace
}  // namespace bkm
