// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The registered op against torch's own attention, one document at a time.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StrEq;

// Loads the library once per process, like torch.ops.load_library.
class VarlenCpuTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static void* const library = dlopen("harness/kernels/libvarlen_cpu.so", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    library_ = library;
    torch::manual_seed(1);
  }

  template <typename Function>
  static Function* Symbol(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  // What the library recorded since the last call.
  static std::vector<std::string> Differences() {
    auto* const take = Symbol<bool(char*, int64_t)>("bkm_varlen_take_difference");
    std::vector<std::string> differences;
    for (char text[500]; take(text, sizeof(text));) differences.push_back(text);
    return differences;
  }

  static inline void* library_ = nullptr;
};

constexpr int64_t kHeads = 4, kKeyHeads = 2, kDim = 16, kTokens = 17, kLongest = 11;

torch::Tensor Offsets() { return torch::tensor({0, 5, 6, 17}, torch::kInt); }
torch::Tensor Random(int64_t heads, torch::ScalarType type, int64_t dim = kDim) {
  return torch::randn({kTokens, heads, dim}).to(type);
}

auto Forward(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
             std::optional<int64_t> window_left = -1, std::optional<double> scale = std::nullopt) {
  return at::_flash_attention_forward(query, key, value, Offsets(), Offsets(), kLongest, kLongest,
                                      0.0, true, false, scale, window_left, 0);
}

// Rows of document `begin`..`end` as sdpa wants them, in double: [1, heads, tokens, head_dim].
torch::Tensor Document(const torch::Tensor& packed, int64_t begin, int64_t end) {
  return packed.slice(0, begin, end)
      .transpose(0, 1)
      .unsqueeze(0)
      .to(torch::kDouble)
      .detach()
      .clone();
}

// The largest relative error, in units of the type's own rounding (2^-8 for bf16, 2^-11 for fp16).
double Roundings(const torch::Tensor& got, const torch::Tensor& want, torch::ScalarType type) {
  const double unit = type == torch::kBFloat16 ? 1.0 / 256 : 1.0 / 2048;
  return ((got.to(torch::kDouble) - want).abs().max() / want.abs().max()).item<double>() / unit;
}

void ExpectAgreesWithSdpa(torch::ScalarType type, int64_t value_dim = kDim) {
  const torch::Tensor query = Random(kHeads, type), key = Random(kKeyHeads, type),
                      value = Random(kKeyHeads, type, value_dim),
                      slope = Random(kHeads, type, value_dim);
  const auto forward = Forward(query, key, value);
  const torch::Tensor output = std::get<0>(forward);
  EXPECT_EQ(output.scalar_type(), type);
  EXPECT_TRUE(output.is_contiguous());
  EXPECT_EQ(std::get<1>(forward).sizes(), (torch::IntArrayRef{kHeads, kTokens}));
  const torch::Tensor state = torch::zeros({2}, torch::kUInt64);
  const auto backward = at::_flash_attention_backward(
      slope, query, key, value, output, std::get<1>(forward), Offsets(), Offsets(), kLongest,
      kLongest, 0.0, true, state, state, std::nullopt, -1, 0);
  for (const auto& [begin, end] : {std::pair{0, 5}, std::pair{5, 6}, std::pair{6, 17}}) {
    SCOPED_TRACE(begin);
    const torch::Tensor q = Document(query, begin, end).requires_grad_(),
                        k = Document(key, begin, end).requires_grad_(),
                        v = Document(value, begin, end).requires_grad_();
    const torch::Tensor want = at::scaled_dot_product_attention(
        q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), {}, 0.0, true);
    want.backward(Document(slope, begin, end));
    EXPECT_LT(Roundings(Document(output, begin, end), want, type), 0.6);
    // The backward pass starts from the rounded output, so there are a few more roundings. For a
    // single token the gradients of q and k are zero, up to rounding.
    EXPECT_LT(Roundings(Document(std::get<2>(backward), begin, end), v.grad(), type), 1);
    if (end - begin == 1) continue;
    EXPECT_LT(Roundings(Document(std::get<0>(backward), begin, end), q.grad(), type), 3);
    EXPECT_LT(Roundings(Document(std::get<1>(backward), begin, end), k.grad(), type), 3);
  }
}

TEST_F(VarlenCpuTest, AgreesWithSdpaPerDocumentInBf16) { ExpectAgreesWithSdpa(torch::kBFloat16); }
TEST_F(VarlenCpuTest, AgreesWithSdpaPerDocumentInFp16) { ExpectAgreesWithSdpa(torch::kHalf); }
TEST_F(VarlenCpuTest, ValuesMayHaveAnotherHeadDim) { ExpectAgreesWithSdpa(torch::kBFloat16, 24); }

TEST_F(VarlenCpuTest, StridedInputAndContiguousInputGiveTheSame) {
  const torch::Tensor query = Random(kHeads, torch::kBFloat16),
                      key = Random(kKeyHeads, torch::kBFloat16),
                      value = Random(kKeyHeads, torch::kBFloat16);
  const auto strided = [](const torch::Tensor& x) {
    return x.transpose(0, 1).contiguous().transpose(0, 1);
  };
  const torch::Tensor output = std::get<0>(Forward(strided(query), strided(key), strided(value)));
  EXPECT_TRUE(output.is_contiguous());
  EXPECT_TRUE(output.equal(std::get<0>(Forward(query, key, value))));
}

TEST_F(VarlenCpuTest, NumberOfThreadsChangesNoBit) {
  const torch::Tensor query = Random(kHeads, torch::kBFloat16),
                      key = Random(kKeyHeads, torch::kBFloat16),
                      value = Random(kKeyHeads, torch::kBFloat16);
  at::set_num_threads(1);
  const torch::Tensor alone = std::get<0>(Forward(query, key, value));
  at::set_num_threads(2);
  EXPECT_TRUE(alone.equal(std::get<0>(Forward(query, key, value))));
}

TEST_F(VarlenCpuTest, ScaleAndWindowAreHonoured) {
  const torch::Tensor query = Random(kHeads, torch::kBFloat16),
                      key = Random(kKeyHeads, torch::kBFloat16),
                      value = Random(kKeyHeads, torch::kBFloat16);
  // A window of one lets each token see itself alone: the output is its own value.
  EXPECT_TRUE(std::get<0>(Forward(query, key, value, 0)).equal(value.repeat_interleave(2, 1)));
  // Scale 0 gives all visible values the same weight: the second token gets the mean of two.
  const torch::Tensor mean = std::get<0>(Forward(query, key, value, -1, 0.0))[1];
  const torch::Tensor want = value.slice(0, 0, 2).to(torch::kFloat).mean(0).repeat_interleave(2, 0);
  EXPECT_TRUE(mean.equal(want.to(torch::kBFloat16)));
}

TEST_F(VarlenCpuTest, RecordsArgumentsThatAGpuComputesDifferently) {
  const torch::Tensor x = Random(kHeads, torch::kBFloat16);
  auto* const calls = Symbol<int64_t()>("bkm_varlen_forward_calls");
  const int64_t before = calls();
  Forward(x, x, x);
  EXPECT_EQ(calls(), before + 1);
  EXPECT_THAT(Differences(), IsEmpty());
  const auto forward = at::_flash_attention_forward(x, x, x, Offsets(), Offsets(), kLongest - 1,
                                                    kLongest, 0.0, true, false);
  EXPECT_THAT(Differences(),
              ElementsAre("forward\tmax_q\tmax_q is 10, but document 2 has 11 tokens: a GPU does "
                          "not compute the rest"));
  const torch::Tensor state = torch::zeros({2}, torch::kUInt64);
  at::_flash_attention_backward(x, x, x, x, std::get<0>(forward), std::get<1>(forward), Offsets(),
                                Offsets(), kLongest, 4, 0.0, true, state, state);
  EXPECT_THAT(Differences(),
              ElementsAre("backward\tmax_k\tmax_k is 4, but document 0 has 5 tokens: a GPU gives "
                          "the rest no gradient"));
}

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it ran";
}

TEST_F(VarlenCpuTest, RefusesWhatTheCudaKernelsRefuseInTheirWords) {
  const torch::Tensor half = Random(kHeads, torch::kBFloat16), full = Random(kHeads, torch::kFloat);
  const torch::Tensor narrow = half.slice(2, 0, 12), one = half.slice(1, 0, 3);
  EXPECT_THAT(Refusal([&] { Forward(full, full, full); }),
              StrEq("FlashAttention only support fp16 and bf16 data type"));
  EXPECT_THAT(Refusal([&] { Forward(half, full, half); }),
              HasSubstr("query and key must have the same dtype"));
  EXPECT_THAT(Refusal([&] { Forward(half, half, half.to(torch::kHalf)); }),
              HasSubstr("query and value must have the same dtype"));
  EXPECT_THAT(Refusal([&] { Forward(half, one, one); }),
              HasSubstr("Number of heads in key/value must divide number of heads in query"));
  const torch::Tensor wide = Random(kHeads, torch::kBFloat16, 96);
  EXPECT_THAT(Refusal([&] { Forward(wide, wide, half); }),
              HasSubstr("If V headdim is different from Q/K dim"));
  EXPECT_THAT(Refusal([&] { Forward(narrow, narrow, narrow); }),
              HasSubstr("head_size must be a multiple of 8"));
  EXPECT_THAT(Refusal([&] {
                at::_flash_attention_forward(half, half, half, Offsets(), Offsets(), kLongest,
                                             kLongest, 0.0, true, /*return_debug_mask=*/true);
              }),
              HasSubstr("return_softmax is only supported when p_dropout > 0.0"));
  EXPECT_THAT(Refusal([&] {
                at::_flash_attention_forward(half, half, half, Offsets().to(torch::kLong),
                                             Offsets(), kLongest, kLongest, 0.0, true, false);
              }),
              HasSubstr("cu_seqlens_q must have dtype int32"));
}

TEST_F(VarlenCpuTest, SaysWhatItCannotDo) {
  const torch::Tensor x = Random(kHeads, torch::kBFloat16), slopes = torch::ones({kHeads});
  const auto call = [&](const std::optional<torch::Tensor>& offsets, double dropout,
                        const std::optional<torch::Tensor>& keys_used,
                        const std::optional<torch::Tensor>& alibi) {
    return Refusal([&] {
      at::_flash_attention_forward(x, x, x, offsets, offsets, kLongest, kLongest, dropout, true,
                                   false, std::nullopt, -1, 0, keys_used, alibi);
    });
  };
  EXPECT_THAT(call(std::nullopt, 0, {}, {}), HasSubstr("cum_seq_q and cum_seq_k are needed"));
  EXPECT_THAT(call(Offsets(), 0.1, {}, {}), HasSubstr("no dropout, but dropout_p is 0.1"));
  EXPECT_THAT(call(Offsets(), 0, torch::ones({3}, torch::kInt), {}), HasSubstr("no seqused_k"));
  EXPECT_THAT(call(Offsets(), 0, {}, slopes), HasSubstr("no alibi_slopes"));
  EXPECT_THAT(call(torch::tensor({0, 99}, torch::kInt), 0, {}, {}),
              HasSubstr("cu_seqlens_q runs from 0 to 99, past the 17 tokens"));
  EXPECT_THAT(call(torch::tensor({0, 9, 5}, torch::kInt), 0, {}, {}),
              HasSubstr("cu_seqlens_q decreases at 2"));
}

}  // namespace
}  // namespace bkm
