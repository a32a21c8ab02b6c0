// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/attention_vocabulary.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/judge/exception_text.h"

namespace bkm {
namespace {

// flex_flash comes before flex because its words contain flex's.
const std::vector<AttentionBackend>& Table() {
  static const std::vector<AttentionBackend>& table = *new std::vector<AttentionBackend>{
      {.name = "flex_flash",
       .asked = {"flex_flash"},
       .spoken = {"flexflash", "flexflashattention"},
       .ops = {"flex_attention"},
       .nodes = {"FlexAttention"}},
      {.name = "flex",
       .asked = {"flex", "flex_attention"},
       .spoken = {"flex", "flexattention", "flexattn"},
       .ops = {"flex_attention", "FlexAttentionAutogradOp"},
       .nodes = {"FlexAttention"}},
      {.name = "varlen",
       .asked = {"varlen"},
       .spoken = {"varlen", "varlenattention", "varlenattn"},
       .ops = {"torch_attn::_varlen_attn"},
       .nodes = {"torch_attn__varlen_attn"}},
      {.name = "sdpa",
       .asked = {"sdpa"},
       .spoken = {"sdpa", "sdpaattention", "scaleddotproductattention"},
       .ops = {"scaled_dot_product"},
       .nodes = {"ScaledDotProduct"},
       .composite = "_scaled_dot_product_attention_math"},
      {.name = "flash_attention_2",
       .asked = {"flash_attention_2"},
       .spoken = {"flashattention2", "flashattn2", "flashattention", "flashattn"},
       .ops = {"flash_attn::", "FlashAttn"},
       .nodes = {"flash_attn__", "FlashAttn"},
       .package = "flash_attn",
       .told_borders = true},
      {.name = "flash_attention_3",
       .asked = {"flash_attention_3"},
       .spoken = {"flashattention3", "flashattn3", "flashattention", "flashattn"},
       .ops = {"flash_attn_3::", "FlashAttn"},
       .nodes = {"flash_attn_3__", "FlashAttn"},
       .told_borders = true},
      {.name = "eager", .asked = {"eager"}, .spoken = {"eager", "eagerattention"}},
  };
  return table;
}

// Splits into words of letters, digits and underscores, each squeezed.
std::vector<std::string> Words(absl::string_view text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (absl::ascii_isalnum(c)) {
      words.back().push_back(absl::ascii_tolower(c));
    } else if (c != '_' && !words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Whether up to four consecutive words concatenate to `squeezed`.
bool HasPhrase(const std::vector<std::string>& words, absl::string_view squeezed) {
  constexpr size_t kMaxWords = 4;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string phrase;
    for (size_t j = i; j < std::min(words.size(), i + kMaxWords); ++j) {
      phrase += words[j];
      if (phrase == squeezed) return true;
      if (phrase.size() >= squeezed.size()) break;
    }
  }
  return false;
}

// Removes the suffixes that libraries append to a backend's name in classes and functions.
std::string WithoutSuffix(std::string squeezed) {
  for (absl::string_view suffix : {"config", "wrapper", "module", "forward", "function"}) {
    if (absl::EndsWith(squeezed, suffix)) squeezed.resize(squeezed.size() - suffix.size());
  }
  return squeezed;
}

bool HasPart(std::span<const std::string> names, absl::string_view part) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return absl::StrContains(name, part); });
}

bool HasWord(absl::string_view name, const std::vector<absl::string_view>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StrContains(name, word); });
}

// Eager attention has no names of its own: softmax and bmm count only if no other backend shows.
ShownBackend ShownBy(std::span<const std::string> names, const AttentionBackend& asked,
                     std::vector<absl::string_view> AttentionBackend::*words) {
  ShownBackend shown;
  for (const std::string& name : names) {
    if (HasWord(name, asked.*words)) {
      shown.is_asked = true;
      continue;
    }
    for (const AttentionBackend& backend : Table()) {
      if (HasWord(name, backend.*words)) shown.other = &backend;
    }
  }
  if (shown.is_asked || shown.other != nullptr || !IsPlainAttention(names)) return shown;
  if (asked.name == "eager")
    shown.is_asked = true;
  else
    shown.other = AskedBackend("eager");
  return shown;
}

}  // namespace

std::span<const AttentionBackend> AttentionBackends() { return Table(); }

const AttentionBackend* AskedBackend(absl::string_view attention) {
  for (const AttentionBackend& backend : Table()) {
    if (std::find(backend.asked.begin(), backend.asked.end(), attention) != backend.asked.end())
      return &backend;
  }
  return nullptr;
}

bool IsNamedAfter(absl::string_view name, const AttentionBackend& backend) {
  const auto is = [&](const std::vector<absl::string_view>& names, absl::string_view word) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  if (AskedBackend(name) != nullptr) return is(backend.asked, name);
  // "transformers.integrations.flex_attention.flex_attention_forward", "FlexAttention.Config".
  const std::vector<std::string> parts = absl::StrSplit(name, '.', absl::SkipEmpty());
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return is(backend.spoken, WithoutSuffix(Squeezed(part)));
  });
}

const AttentionBackend* BackendOfName(absl::string_view name) {
  for (const AttentionBackend& backend : Table()) {
    if (IsNamedAfter(name, backend)) return &backend;
  }
  return nullptr;
}

ShownBackend BackendOfOps(std::span<const std::string> ops, const AttentionBackend& asked) {
  return ShownBy(ops, asked, &AttentionBackend::ops);
}

ShownBackend BackendOfNodes(std::span<const std::string> nodes, const AttentionBackend& asked) {
  return ShownBy(nodes, asked, &AttentionBackend::nodes);
}

bool IsNodeOf(absl::string_view node, const AttentionBackend& backend) {
  return HasWord(node, backend.nodes);
}

bool IsPlainAttention(std::span<const std::string> names) {
  return (HasPart(names, "softmax") || HasPart(names, "Softmax")) &&
         (HasPart(names, "bmm") || HasPart(names, "Bmm"));
}

bool Names(absl::string_view message, const AttentionBackend& backend) {
  const std::vector<std::string> words = Words(message);
  return std::any_of(backend.spoken.begin(), backend.spoken.end(),
                     [&](absl::string_view spoken) { return HasPhrase(words, spoken); });
}

bool NamesOption(absl::string_view message, absl::string_view option) {
  const std::string squeezed = Squeezed(option);
  // Short values such as "1" or "on" occur in almost any message.
  return squeezed.size() >= 3 && HasPhrase(Words(message), squeezed);
}

bool NamesDegree(absl::string_view message, absl::string_view word) {
  const std::vector<std::string> words = Words(message);
  return std::any_of(words.begin(), words.end(), [&](absl::string_view found) {
    return absl::ConsumePrefix(&found, word) &&
           (found.empty() || found == "size" || found == "degree");
  });
}

}  // namespace bkm
