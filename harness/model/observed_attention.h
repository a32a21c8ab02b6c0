// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_OBSERVED_ATTENTION_H_
#define HARNESS_MODEL_OBSERVED_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bkm {

// The parts of Observation that describe attention.

struct ObservedLayer {
  std::string layer;
  std::string class_name;
  std::string module;
};

struct ObservedMaskCall {
  std::string layer;
  std::string type;
  std::string digest;
  std::optional<int64_t>
      pairs;               // (query, key) pairs that the mask allows, if the mask alone decides
  std::string owner = {};  // caller, model, or the class that holds the mask; empty if unknown
};

// Which log-probs changed after one token was changed.
struct ObservedReach {
  int64_t position = 0;
  std::vector<int64_t> moved;   // flat positions
  std::vector<double> largest;  // |difference| at each of them
};

// Which query attends to which key in one layer: `relation` is the digest of a tensor in
// tensors/attended.safetensors.
struct ObservedRelation {
  int64_t layer = 0;
  std::string relation;
};

// Attention kernels that one layer dispatched in calls with gradients.
struct ObservedKernels {
  int64_t layer = 0;
  std::vector<std::string> forward;   // ops
  std::vector<std::string> backward;  // autograd nodes between its output and its inputs
  // How many such calls each training step had. Empty in older runs, which saw one call of step 1.
  std::vector<int64_t> calls = {};
  std::string precision = {};  // that they computed in: bf16, fp32
};

// An argument of an attention call with which a GPU's kernel computes something else than the CPU's
// stand-in did.
struct ObservedGpuDifference {
  std::string stand_in;         // flex-cpu, varlen-cpu
  int64_t layer = -1;           // -1: unknown, as in a backward pass
  std::optional<int64_t> step;  // absent: in the evidence forwards
  std::string argument;         // kv_indices, max_q, ...
  std::string what;             // the first place
  int64_t calls = 0;
};

// Calls of flash_attn's functions with the same arguments, in one training step.
struct ObservedKernelCalls {
  std::vector<int64_t> layers;  // -1: unknown
  std::vector<int64_t> calls;   // of each of these layers
  std::optional<int64_t> step;  // absent: in the evidence forwards
  std::string dtype;            // of queries: bfloat16
  // [tokens, heads, size] with borders, else [rows, tokens, heads, size].
  std::vector<int64_t> query_shape, key_shape;
  std::vector<int64_t> query_borders, key_borders;    // cu_seqlens: 0, then each sequence's end
  std::optional<int64_t> longest_query, longest_key;  // max_seqlen, as told
  bool causal = false;
  std::vector<int64_t> window;  // tokens to the left and right of a query; -1: all
  double softcap = 0;
  double scale = 0;  // of the products of queries and keys
  double dropout = 0;
};

}  // namespace bkm

#endif  // HARNESS_MODEL_OBSERVED_ATTENTION_H_
