// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_ATTENTION_VOCABULARY_H_
#define HARNESS_JUDGE_ATTENTION_VOCABULARY_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

// The names by which one attention backend can be recognised. The vocabulary lists backends, never
// versions: when a library renames a class, add a word here.
struct AttentionBackend {
  absl::string_view name;                 // "flex"
  std::vector<absl::string_view> asked;   // values of the probe's `attention` that ask for it
  std::vector<absl::string_view> spoken;  // its names in messages, classes and callables, squeezed
  std::vector<absl::string_view> ops;     // substrings of op names; any match witnesses it
  std::vector<absl::string_view> nodes;   // the same for the autograd nodes of its backward pass
  // An op of this backend that is composed of plain ops, so that its backward pass looks like eager
  // attention's.
  absl::string_view composite = "";
  // The package that its kernels come with, where that is none of the subjects and not torch.
  absl::string_view package = "";
  // Lengths tell it where documents are, as arguments of its package's functions: it gets no mask.
  bool told_borders = false;
};

std::span<const AttentionBackend> AttentionBackends();

// The backend that `attention` asks for, or nullptr if the vocabulary does not list it.
const AttentionBackend* AskedBackend(absl::string_view attention);

// Whether a class, a callable or a configured name is named after this backend.
bool IsNamedAfter(absl::string_view name, const AttentionBackend& backend);

// The backend that a class ("FlexAttentionWrapper", "VarlenAttention.Config"), a callable
// ("transformers.integrations.sdpa_attention.sdpa_attention_forward") or a configured name ("sdpa")
// belongs to; nullptr if the name identifies no backend ("Qwen3Attention").
const AttentionBackend* BackendOfName(absl::string_view name);

// Whether ops or nodes show attention written out in plain ops: softmax and bmm.
bool IsPlainAttention(std::span<const std::string> names);

// What ops or nodes say about the asked backend.
struct ShownBackend {
  const AttentionBackend* other = nullptr;  // ran instead of the asked one, or beside it
  bool is_asked = false;                    // the asked one is among the names
};
// An op or node that belongs to another backend shows that backend, whatever stands beside it.
// Plain ops (softmax and bmm) show eager attention only where nothing else is shown.
ShownBackend BackendOfOps(std::span<const std::string> ops, const AttentionBackend& asked);
ShownBackend BackendOfNodes(std::span<const std::string> nodes, const AttentionBackend& asked);

// Whether one op or node is the asked backend's.
bool IsNodeOf(absl::string_view node, const AttentionBackend& backend);

// Whether a message names the backend, in any spelling: "FlashAttention2", "flash_attention_2" and
// "Flash Attention 2" are the same. "VarlenMetadata" and "flexible" name no backend.
bool Names(absl::string_view message, const AttentionBackend& backend);
// The same for the name or value of an option.
bool NamesOption(absl::string_view message, absl::string_view option);
// Whether a message has the word, or a size or degree of it: "CP", "cp_size > 1". For names that
// are too short for NamesOption. "cp_mesh" is another word.
bool NamesDegree(absl::string_view message, absl::string_view word);

}  // namespace bkm

#endif  // HARNESS_JUDGE_ATTENTION_VOCABULARY_H_
