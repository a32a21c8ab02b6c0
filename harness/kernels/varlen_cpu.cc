// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// aten::_flash_attention_forward and _backward for the CPU dispatch key, so that
// torch.nn.attention.varlen runs unmodified without a GPU. Uses torch's stable ABI as of 2.10: one
// library serves 2.10 and later. It accepts and refuses the same inputs as the CUDA kernels, with
// the messages of ATen's flash_attn/flash_api.cpp: a cell must stop here where it would stop on a
// GPU. README.md lists the remaining differences.
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 10) << 48))
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "harness/kernels/varlen_arguments.h"
#include "harness/kernels/varlen_attention.h"

namespace bkm {
namespace {

using torch::headeronly::BFloat16;
using torch::headeronly::Half;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;
using OptionalInt = std::optional<int64_t>;
using OptionalDouble = std::optional<double>;

// Like STD_TORCH_CHECK, but without the place of the check in the message: users read, and devices
// are compared by, the CUDA kernels' own sentence.
template <typename... Parts>
void Require(bool condition, const Parts&... parts) {
  if (condition) return;
  std::ostringstream message;
  (message << ... << parts);
  throw std::runtime_error(message.str());
}

// The loader picks the widest vectors of the processor. `flatten` inlines the templates into each
// version, so that they are compiled for it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define BKM_FOR_EACH_CPU \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
#else
#define BKM_FOR_EACH_CPU
#endif

BKM_FOR_EACH_CPU void ForwardHead(const VarlenShape& shape,
                                  const VarlenForwardTensors<BFloat16, float>& tensors,
                                  int64_t document, int64_t head) {
  VarlenForwardHead(shape, tensors, document, head);
}
BKM_FOR_EACH_CPU void ForwardHead(const VarlenShape& shape,
                                  const VarlenForwardTensors<Half, float>& tensors,
                                  int64_t document, int64_t head) {
  VarlenForwardHead(shape, tensors, document, head);
}
BKM_FOR_EACH_CPU void BackwardKeyHead(const VarlenShape& shape,
                                      const VarlenBackwardTensors<BFloat16, float>& tensors,
                                      int64_t document, int64_t key_head) {
  VarlenBackwardKeyHead(shape, tensors, document, key_head);
}
BKM_FOR_EACH_CPU void BackwardKeyHead(const VarlenShape& shape,
                                      const VarlenBackwardTensors<Half, float>& tensors,
                                      int64_t document, int64_t key_head) {
  VarlenBackwardKeyHead(shape, tensors, document, key_head);
}

// Calls `run` with a value of the tensor's type.
template <typename F>
void WithStoredType(const Tensor& tensor, F run) {
  if (tensor.scalar_type() == ScalarType::BFloat16) {
    run(BFloat16());
  } else {
    run(Half());
  }
}

template <typename Stored>
const Stored* Data(const Tensor& tensor) {
  return static_cast<const Stored*>(tensor.const_data_ptr());
}
template <typename Stored>
Stored* MutableData(Tensor& tensor) {
  return static_cast<Stored*>(tensor.mutable_data_ptr());
}

bool HasShape(const Tensor& tensor, int64_t rows, int64_t heads, int64_t head_dim) {
  return tensor.dim() == 3 && tensor.size(0) == rows && tensor.size(1) == heads &&
         tensor.size(2) == head_dim;
}

// `name` is what FlashAttention calls the tensor.
std::vector<int64_t> Offsets(const Tensor& tensor, int64_t rows, const char* name) {
  Require(tensor.scalar_type() == ScalarType::Int, name, " must have dtype int32");
  Require(tensor.dim() == 1 && tensor.is_contiguous(), name, " must be contiguous");
  Require(tensor.numel() > 1, "batch size must be positive");
  const int32_t* data = Data<int32_t>(tensor);
  std::vector<int64_t> offsets(data, data + tensor.numel());
  // A GPU reads out of bounds here; a CPU cell must not crash its worker.
  Require(offsets.front() >= 0 && offsets.back() <= rows, name, " runs from ", offsets.front(),
          " to ", offsets.back(), ", past the ", rows, " tokens");
  for (size_t i = 1; i < offsets.size(); ++i)
    Require(offsets[i - 1] <= offsets[i], name, " decreases at ", i);
  return offsets;
}

void CheckInputs(const Tensor& query, const Tensor& key, const Tensor& value, double dropout) {
  const ScalarType type = query.scalar_type();
  Require(type == ScalarType::Half || type == ScalarType::BFloat16,
          "FlashAttention only support fp16 and bf16 data type");
  Require(key.scalar_type() == type, "query and key must have the same dtype");
  Require(value.scalar_type() == type, "query and value must have the same dtype");
  Require(dropout == 0, "FlashAttention on CPU has no dropout, but dropout_p is ", dropout);
  Require(query.dim() == 3 && key.dim() == 3,
          "FlashAttention on CPU takes packed (tokens, heads, head_dim) input, not ", query.dim(),
          " dimensions");
  Require(query.stride(2) == 1 && key.stride(2) == 1 && value.dim() == 3 && value.stride(2) == 1,
          "Input tensor must have contiguous last dimension");
  const int64_t heads = query.size(1), key_heads = key.size(1), head_dim = query.size(2);
  Require(head_dim <= 256, "FlashAttention forward only supports head dimension at most 256");
  Require(head_dim > 0 && head_dim % 8 == 0,
          "head_size must be a multiple of 8, this is ensured by padding!");
  Require(key_heads > 0 && heads % key_heads == 0,
          "Number of heads in key/value must divide number of heads in query");
  const int64_t value_dim = value.size(2);
  Require(HasShape(key, key.size(0), key_heads, head_dim) &&
              HasShape(value, key.size(0), key_heads, value_dim),
          "key and value must have shape (tokens, heads, head_dim) with query's head_dim ",
          head_dim);
  // FlashAttention 2 takes no other size for values. FlashAttention 3 does, in two cases
  // (hopper/flash_api.cpp).
  Require(value_dim == head_dim || (value_dim % 8 == 0 && ((head_dim > 128 && head_dim <= 192 &&
                                                            value_dim > 96 && value_dim <= 128) ||
                                                           (head_dim <= 64 && value_dim <= 512))),
          "If V headdim is different from Q/K dim, we only support Q/K headdim in (128, 192] and V "
          "headdim in (96, 128], or (Q/K <= 64 and V <= 512).");
}

// What was asked of the ops, for the cell's witness. Subjects call them from several threads.
struct Record {
  std::atomic<int64_t> forward_calls = 0;
  std::atomic<int64_t> backward_calls = 0;
  std::mutex mutex;
  std::deque<std::string> differences;  // "forward<tab>argument<tab>what", oldest first
};
constexpr size_t kMostDifferences = 10000;

Record& TheRecord() {
  static Record& record = *new Record;
  return record;
}

void Note(const char* pass, const VarlenShape& shape, const VarlenLengths& lengths) {
  for (const VarlenDifference& difference : DifferencesOnGpu(shape, lengths)) {
    const std::lock_guard<std::mutex> lock(TheRecord().mutex);
    if (TheRecord().differences.size() >= kMostDifferences) return;
    TheRecord().differences.push_back(std::string(pass) + "\t" + difference.argument + "\t" +
                                      difference.what);
  }
}

struct Options {
  bool is_causal;
  OptionalDouble scale;
  OptionalInt window_left, window_right;
};

VarlenShape MakeShape(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& query_offsets, const Tensor& key_offsets,
                      const Options& options) {
  VarlenShape shape;
  shape.query_offsets = Offsets(query_offsets, query.size(0), "cu_seqlens_q");
  shape.key_offsets = Offsets(key_offsets, key.size(0), "cu_seqlens_k");
  Require(shape.query_offsets.size() == shape.key_offsets.size(),
          "cu_seqlens_q and cu_seqlens_k must have the same length");
  shape.total_queries = query.size(0);
  shape.query_heads = query.size(1);
  shape.key_heads = key.size(1);
  shape.head_dim = query.size(2);
  shape.value_dim = value.size(2);
  shape.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  shape.window_left = options.window_left.value_or(-1);
  shape.window_right = options.is_causal ? 0 : options.window_right.value_or(-1);
  return shape;
}

using ForwardResult = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

ForwardResult Forward(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& query_offsets, const Tensor& key_offsets, int64_t max_queries,
                      int64_t max_keys, const Options& options) {
  const VarlenShape shape = MakeShape(query, key, value, query_offsets, key_offsets, options);
  ++TheRecord().forward_calls;
  Note("forward", shape, {max_queries, max_keys, query.size(0), key.size(0)});
  const Tensor q = torch::stable::contiguous(query), k = torch::stable::contiguous(key),
               v = torch::stable::contiguous(value);
  // Zeros: rows that belong to no document are not written.
  Tensor output = torch::stable::new_zeros(q, {q.size(0), q.size(1), v.size(2)});
  Tensor logsumexp = torch::stable::new_zeros(q, {q.size(1), q.size(0)}, ScalarType::Float);
  WithStoredType(q, [&](auto stored) {
    using Stored = decltype(stored);
    const VarlenForwardTensors<Stored, float> tensors = {
        Data<Stored>(q), Data<Stored>(k), Data<Stored>(v), MutableData<Stored>(output),
        MutableData<float>(logsumexp)};
    const int64_t tasks = shape.Documents() * shape.query_heads;
    torch::stable::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        ForwardHead(shape, tensors, task / shape.query_heads, task % shape.query_heads);
    });
  });
  // Without dropout nobody reads the generator's state; the schema needs the values.
  return {output, logsumexp, torch::stable::new_zeros(q, {2}, ScalarType::UInt64),
          torch::stable::new_zeros(q, {}, ScalarType::UInt64), torch::stable::new_empty(q, {0})};
}

std::tuple<Tensor, Tensor, Tensor> Backward(const Tensor& output_gradient, const Tensor& query,
                                            const Tensor& key, const Tensor& value,
                                            const Tensor& output, const Tensor& logsumexp,
                                            const Tensor& query_offsets, const Tensor& key_offsets,
                                            int64_t max_queries, int64_t max_keys, double dropout,
                                            bool is_causal, const Tensor&, const Tensor&,
                                            OptionalDouble scale, OptionalInt window_left,
                                            OptionalInt window_right) {
  CheckInputs(query, key, value, dropout);
  const VarlenShape shape = MakeShape(query, key, value, query_offsets, key_offsets,
                                      {is_causal, scale, window_left, window_right});
  Require(output.scalar_type() == query.scalar_type(), "query and out must have the same dtype");
  Require(output_gradient.scalar_type() == query.scalar_type(),
          "query and dout must have the same dtype");
  Require(HasShape(output, shape.total_queries, shape.query_heads, shape.value_dim) &&
              HasShape(output_gradient, shape.total_queries, shape.query_heads, shape.value_dim),
          "out and dout must have query's shape, with value's head_dim");
  Require(logsumexp.scalar_type() == ScalarType::Float && logsumexp.dim() == 2 &&
              logsumexp.size(0) == shape.query_heads && logsumexp.size(1) == shape.total_queries,
          "logsumexp must be float32 of shape (heads, tokens)");
  ++TheRecord().backward_calls;
  Note("backward", shape, {max_queries, max_keys, query.size(0), key.size(0)});
  const Tensor g = torch::stable::contiguous(output_gradient), q = torch::stable::contiguous(query),
               k = torch::stable::contiguous(key), v = torch::stable::contiguous(value),
               o = torch::stable::contiguous(output), l = torch::stable::contiguous(logsumexp);
  Tensor q_gradient = torch::stable::new_zeros(q, {q.size(0), q.size(1), q.size(2)});
  Tensor k_gradient = torch::stable::new_zeros(k, {k.size(0), k.size(1), k.size(2)});
  Tensor v_gradient = torch::stable::new_zeros(v, {v.size(0), v.size(1), v.size(2)});
  WithStoredType(q, [&](auto stored) {
    using Stored = decltype(stored);
    const VarlenBackwardTensors<Stored, float> tensors = {Data<Stored>(g),
                                                          Data<Stored>(q),
                                                          Data<Stored>(k),
                                                          Data<Stored>(v),
                                                          Data<Stored>(o),
                                                          Data<float>(l),
                                                          MutableData<Stored>(q_gradient),
                                                          MutableData<Stored>(k_gradient),
                                                          MutableData<Stored>(v_gradient)};
    const int64_t tasks = shape.Documents() * shape.key_heads;
    torch::stable::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        BackwardKeyHead(shape, tensors, task / shape.key_heads, task % shape.key_heads);
    });
  });
  return {q_gradient, k_gradient, v_gradient};
}

// Boxed by hand, because TORCH_BOX needs the exact number of the schema's parameters, and this
// schema grew at its end (15 arguments in torch 2.10; block_table and num_splits came later).
// num_splits is ignored: it only cuts the work into other pieces.
void BoxedForward(StableIValue* stack, uint64_t arguments, uint64_t results) {
  using torch::stable::detail::from;
  using torch::stable::detail::to;
  Require(arguments >= 15 && arguments <= 17 && results == 5, "aten::_flash_attention_forward has ",
          arguments, " arguments in this torch: an unknown schema");
  const Tensor query = to<Tensor>(stack[0]), key = to<Tensor>(stack[1]),
               value = to<Tensor>(stack[2]);
  const OptionalTensor query_offsets = to<OptionalTensor>(stack[3]),
                       key_offsets = to<OptionalTensor>(stack[4]);
  const int64_t max_queries = to<int64_t>(stack[5]), max_keys = to<int64_t>(stack[6]);
  const double dropout = to<double>(stack[7]);
  // Here dropout_p is always 0: CheckInputs refuses another.
  Require(!to<bool>(stack[9]), "return_softmax is only supported when p_dropout > 0.0");
  const Options options = {to<bool>(stack[8]), to<OptionalDouble>(stack[10]),
                           to<OptionalInt>(stack[11]), to<OptionalInt>(stack[12])};
  const OptionalTensor keys_used = to<OptionalTensor>(stack[13]),
                       slopes = to<OptionalTensor>(stack[14]);
  const OptionalTensor block_table =
      arguments > 15 ? to<OptionalTensor>(stack[15]) : OptionalTensor();
  Require(!block_table, "FlashAttention on CPU has no paged keys (block_table)");
  Require(!keys_used, "FlashAttention on CPU has no seqused_k");
  Require(!slopes, "FlashAttention on CPU has no alibi_slopes");
  CheckInputs(query, key, value, dropout);
  Require(query_offsets && key_offsets,
          "FlashAttention on CPU takes packed input only: cum_seq_q and cum_seq_k are "
          "needed");
  auto [output, logsumexp, state, unused, mask] =
      Forward(query, key, value, *query_offsets, *key_offsets, max_queries, max_keys, options);
  stack[0] = from(output);
  stack[1] = from(logsumexp);
  stack[2] = from(state);
  stack[3] = from(unused);
  stack[4] = from(mask);
}

}  // namespace
}  // namespace bkm

// For the cell's witness (bkm_cell/shims/varlen_cpu.py), which opens this library by ctypes.
extern "C" {
__attribute__((visibility("default"))) int64_t bkm_varlen_forward_calls() {
  return bkm::TheRecord().forward_calls;
}
__attribute__((visibility("default"))) int64_t bkm_varlen_backward_calls() {
  return bkm::TheRecord().backward_calls;
}
// Takes the oldest difference from the record, as text of at most `size` bytes with its final zero.
// False if there is none.
__attribute__((visibility("default"))) bool bkm_varlen_take_difference(char* text, int64_t size) {
  bkm::Record& record = bkm::TheRecord();
  const std::lock_guard<std::mutex> lock(record.mutex);
  if (record.differences.empty()) return false;
  std::strncpy(text, record.differences.front().c_str(), size - 1);
  text[size - 1] = 0;
  record.differences.pop_front();
  return true;
}
}

STABLE_TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_flash_attention_forward", &bkm::BoxedForward);
  m.impl("_flash_attention_backward", TORCH_BOX(&bkm::Backward));
}
