// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/kernel_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

constexpr char kStandIn[] = "flash_attn";
constexpr int64_t kMostRows = 100'000;
constexpr int64_t kMostCalls = 1'000'000;  // of one layer with the same arguments
constexpr size_t kMostSaid = 8;            // lengths in a message
// Of a softcap or a scale, which went through Python's floats and perhaps through fp32.
constexpr double kTolerance = 1e-6;

struct ArgumentFault {
  const char* argument;
  std::string what;
};
using ArgumentFaults = std::vector<ArgumentFault>;

bool IsNearTo(double seen, double wanted) {
  return std::abs(seen - wanted) <= kTolerance * std::abs(wanted);
}

// How many tokens a call has: [tokens, heads, size] or [rows, tokens, heads, size].
int64_t TokensOf(const std::vector<int64_t>& shape) {
  if (shape.size() == 3) return shape[0];
  return shape.size() == 4 ? shape[1] : 0;
}

bool RisesFromZero(const std::vector<int64_t>& borders) {
  return borders.front() == 0 && std::is_sorted(borders.begin(), borders.end());
}

// The lengths of a call's sequences of queries; empty ones hold nothing.
DocumentLengths SequencesOf(const ObservedKernelCalls& call) {
  DocumentLengths sequences;
  const std::vector<int64_t>& borders = call.query_borders;
  if (borders.empty() && call.query_shape.size() == 4 && call.query_shape[1] > 0)
    sequences.assign(std::clamp<int64_t>(call.query_shape[0], 0, kMostRows), call.query_shape[1]);
  if (borders.empty() || !RisesFromZero(borders)) return sequences;
  for (size_t i = 1; i < borders.size(); ++i) {
    if (borders[i] > borders[i - 1]) sequences.push_back(borders[i] - borders[i - 1]);
  }
  return sequences;
}

std::string SayLengths(const DocumentLengths& lengths) {
  const size_t said = std::min(lengths.size(), kMostSaid);
  return absl::StrCat(absl::StrJoin(lengths.begin(), lengths.begin() + said, ", "),
                      said < lengths.size() ? ", ..." : "", " tokens");
}

void CheckBorders(const char* name, const std::vector<int64_t>& borders, int64_t tokens,
                  const char* told_name, std::optional<int64_t> told, ArgumentFaults& faults) {
  if (borders.empty()) return;
  if (!RisesFromZero(borders)) {
    faults.push_back({name, absl::StrCat(name, " does not rise from 0")});
    return;
  }
  if (borders.back() != tokens) {
    faults.push_back({name, absl::StrCat(name, " ends at ", borders.back(), ", and there are ",
                                         tokens, " tokens")});
  }
  int64_t longest = 0;
  for (size_t i = 1; i < borders.size(); ++i)
    longest = std::max(longest, borders[i] - borders[i - 1]);
  if (told && *told < longest) {
    faults.push_back(
        {told_name, absl::StrCat(told_name, " is ", *told, ", and the longest sequence has ",
                                 longest, " tokens")});
  }
}

// How far a query sees to its left, at most `most` tokens; below 0: no window.
int64_t ReachOf(int64_t left, int64_t most) { return left < 0 ? most : std::min(left, most); }

std::string SayReach(int64_t left) {
  return left < 0 ? std::string("all tokens before it") : absl::StrCat(left, " tokens before it");
}

void CheckWindow(const ObservedKernelCalls& call, const DocumentLengths& sequences, int64_t window,
                 ArgumentFaults& faults) {
  const int64_t most =
      sequences.empty() ? 0 : *std::max_element(sequences.begin(), sequences.end()) - 1;
  const int64_t left = call.window.empty() ? -1 : call.window[0];
  if (ReachOf(left, most) == ReachOf(window - 1, most)) return;
  faults.push_back({"window_size", absl::StrCat("a token sees ", SayReach(left),
                                                ", and in the model ", SayReach(window - 1))});
}

bool IsCausal(const ObservedKernelCalls& call) {
  return call.causal || (call.window.size() == 2 && call.window[1] == 0);
}

ArgumentFaults FaultsOfCall(const ObservedKernelCalls& call, const NeededCalls& needed) {
  ArgumentFaults faults;
  const ModelShape& shape = needed.shape;
  const int64_t queries = TokensOf(call.query_shape), keys = TokensOf(call.key_shape);
  CheckBorders("cu_seqlens_q", call.query_borders, queries, "max_seqlen_q", call.longest_query,
               faults);
  CheckBorders("cu_seqlens_k", call.key_borders, keys, "max_seqlen_k", call.longest_key, faults);
  if (queries == keys && call.query_borders != call.key_borders)
    faults.push_back({"cu_seqlens_k", "cu_seqlens_k is not cu_seqlens_q"});
  if (!IsCausal(call)) faults.push_back({"causal", "a token sees the tokens after it"});
  if (!IsNearTo(call.softcap, shape.attention_softcap)) {
    faults.push_back({"softcap", absl::StrCat("softcap is ", call.softcap, ", and in the model ",
                                              shape.attention_softcap)});
  }
  if (const double scale = shape.SoftmaxScale();
      !IsNearTo(call.scale, scale) && !IsNearTo(call.scale, scale * RopeSoftmaxFactor(shape.rope)))
    faults.push_back({"softmax_scale",
                      absl::StrCat("softmax_scale is ", call.scale, ", and in the model ", scale)});
  if (call.dropout != 0)
    faults.push_back({"dropout_p", absl::StrCat("dropout_p is ", call.dropout)});
  if (!needed.dtype.empty() && call.dtype != needed.dtype)
    faults.push_back({"q", absl::StrCat("q is ", call.dtype, ", not ", needed.dtype)});
  return faults;
}

// The calls of one layer in one step.
struct LayerCalls {
  int64_t calls = 0;
  DocumentLengths first;             // the sequences of the first call
  std::map<int64_t, int64_t> count;  // of sequences, by length

  void Add(const DocumentLengths& sequences, int64_t times) {
    times = std::clamp<int64_t>(times, 0, kMostCalls);
    calls += times;
    if (first.empty()) first = sequences;
    for (const int64_t length : sequences) count[length] += times;
  }

  // Whether, in each forward of the step, each document may have had a sequence of its own, which
  // padding may follow: as many sequences as documents are at least as long as each of them. If
  // there is no padding, then the sequences are the documents.
  bool MayHold(const DocumentLengths& documents, int64_t micro_batches) const {
    // A checkpointed layer is called again in the backward pass.
    const int64_t times = std::max<int64_t>(1, calls / micro_batches);
    for (const int64_t document : documents) {
      const auto longer = std::count_if(documents.begin(), documents.end(),
                                        [&](int64_t other) { return other >= document; });
      int64_t sequences = 0;
      for (auto it = count.lower_bound(document); it != count.end(); ++it) sequences += it->second;
      if (sequences < times * longer) return false;
    }
    return true;
  }
};

std::vector<ObservedGpuDifference> BorderDifferences(const ObservedBackend& seen, int64_t step,
                                                     const DocumentLengths& documents,
                                                     int64_t micro_batches) {
  std::map<int64_t, LayerCalls> layers;
  for (const ObservedKernelCalls& call : seen.kernel_calls) {
    if (call.step != step) continue;
    const DocumentLengths sequences = SequencesOf(call);
    for (size_t i = 0; i < std::min(call.layers.size(), call.calls.size()); ++i)
      layers[call.layers[i]].Add(sequences, call.calls[i]);
  }
  std::vector<ObservedGpuDifference> differences;
  for (const auto& [number, layer] : layers) {
    if (layer.MayHold(documents, micro_batches)) continue;
    differences.push_back({kStandIn, number, step, "cu_seqlens_q",
                           absl::StrCat("not each document is one sequence: the documents have ",
                                        SayLengths(documents), ", the sequences of the first call ",
                                        SayLengths(layer.first)),
                           layer.calls});
  }
  return differences;
}

}  // namespace

std::vector<ObservedGpuDifference> CallDifferences(const ObservedBackend& seen,
                                                   const NeededCalls& needed) {
  std::vector<ObservedGpuDifference> differences;
  for (const ObservedKernelCalls& call : seen.kernel_calls) {
    const DocumentLengths sequences = SequencesOf(call);
    const ArgumentFaults of_all_layers = FaultsOfCall(call, needed);
    for (size_t i = 0; i < std::min(call.layers.size(), call.calls.size()); ++i) {
      ArgumentFaults faults = of_all_layers;
      const int64_t layer = call.layers[i];
      if (layer >= 0 && layer < needed.shape.layers)
        CheckWindow(call, sequences, needed.shape.WindowOf(layer), faults);
      for (ArgumentFault& fault : faults)
        differences.push_back(
            {kStandIn, layer, call.step, fault.argument, std::move(fault.what), call.calls[i]});
    }
  }
  for (size_t step = 0; step < needed.documents.size(); ++step) {
    for (ObservedGpuDifference& difference : BorderDifferences(
             seen, static_cast<int64_t>(step), needed.documents[step], needed.micro_batches))
      differences.push_back(std::move(difference));
  }
  return differences;
}

std::string UnreadCalls(const ObservedBackend& seen, const NeededCalls& needed) {
  std::set<std::pair<int64_t, int64_t>> read;  // step, layer
  for (const ObservedKernelCalls& call : seen.kernel_calls) {
    for (const int64_t layer : call.layers) {
      if (call.step) read.emplace(*call.step, layer);
    }
  }
  for (size_t step = 0; step < needed.documents.size(); ++step) {
    for (int64_t layer = 0; layer < needed.shape.layers; ++layer) {
      if (!read.contains({static_cast<int64_t>(step), layer}))
        return absl::StrCat("layer ", layer, ", step ", step + 1);
    }
  }
  return "";
}

}  // namespace bkm
