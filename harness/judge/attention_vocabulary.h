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

// How one attention backend shows itself. A vocabulary of backends, not of versions: a library that
// renames a class needs a word here, never a version or a commit.
struct AttentionBackend {
  absl::string_view name;                 // "flex"
  std::vector<absl::string_view> asked;   // values of the probe's `attention` that ask for it
  std::vector<absl::string_view> spoken;  // in messages, classes and callables, squeezed
  std::vector<absl::string_view> ops;     // any of these, as part of an op's name, witnesses it
  std::vector<absl::string_view> nodes;   // the same of its backward, in names of autograd nodes
  // An op of its own forward that is made of plain ops, so that its backward is eager attention's.
  absl::string_view composite = "";
};

std::span<const AttentionBackend> AttentionBackends();

// The backend that `attention` asks for; nullptr: the vocabulary lacks it.
const AttentionBackend* AskedBackend(absl::string_view attention);

// Whether a class, a callable or a configured name is called after this backend.
bool IsNamedAfter(absl::string_view name, const AttentionBackend& backend);

// The backend that a class ("FlexAttentionWrapper", "VarlenAttention.Config"), a callable
// ("transformers.integrations.sdpa_attention.sdpa_attention_forward") or a configured name ("sdpa")
// belongs to; nullptr when it says nothing ("Qwen3Attention").
const AttentionBackend* BackendOfName(absl::string_view name);

// Backends that the ops of a forward pass witness, in the vocabulary's order. Eager attention has
// no op of its own and shows only when no other backend does.
std::vector<const AttentionBackend*> BackendsOfOps(std::span<const std::string> ops);

// The same for the autograd nodes of its backward.
std::vector<const AttentionBackend*> BackendsOfNodes(std::span<const std::string> nodes);

// Whether ops or nodes are those of an attention that is written out: softmax and bmm.
bool IsPlainAttention(std::span<const std::string> names);

// The backend that ran instead of the asked one, where `names` leave no room for that: of all that
// they show, `shown`, none is it. nullptr: they do, or nothing can be said. Eager attention beside
// another one, and backends whose kernels are no torch ops, cannot be seen: that others ran does
// not say that they did not.
const AttentionBackend* OtherShown(std::span<const std::string> names,
                                   const std::vector<const AttentionBackend*>& shown,
                                   const AttentionBackend& asked);

// Whether a message names the backend, in any spelling: "FlashAttention2", "flash_attention_2" and
// "Flash Attention 2" are the same; "VarlenMetadata" and "flexible" name nothing.
bool Names(absl::string_view message, const AttentionBackend& backend);
// The same for one option's name or value.
bool NamesOption(absl::string_view message, absl::string_view option);

}  // namespace bkm

#endif  // HARNESS_JUDGE_ATTENTION_VOCABULARY_H_
