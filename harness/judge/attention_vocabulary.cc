// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/attention_vocabulary.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/judge/exception_text.h"

namespace bkm {
namespace {

// flex_flash stands before flex: it is told by a longer word.
const std::vector<AttentionBackend>& Table() {
  static const std::vector<AttentionBackend>& table = *new std::vector<AttentionBackend>{
      {"flex_flash", {"flex_flash"}, {"flexflash", "flexflashattention"}, {"flex_attention"}},
      {"flex",
       {"flex", "flex_attention"},
       {"flex", "flexattention", "flexattn"},
       {"flex_attention", "FlexAttentionAutogradOp"}},
      {"varlen",
       {"varlen"},
       {"varlen", "varlenattention", "varlenattn"},
       {"torch_attn::_varlen_attn"}},
      {"sdpa",
       {"sdpa"},
       {"sdpa", "sdpaattention", "scaleddotproductattention"},
       {"scaled_dot_product"}},
      {"flash_attention_2",
       {"flash_attention_2"},
       {"flashattention2", "flashattn2", "flashattention", "flashattn"},
       {"flash_attn::", "FlashAttn"}},
      {"flash_attention_3",
       {"flash_attention_3"},
       {"flashattention3", "flashattn3", "flashattention", "flashattn"},
       {"flash_attn_3::"}},
      {"eager", {"eager"}, {"eager", "eagerattention"}, {}},
  };
  return table;
}

// Words of letters, digits and underscores, squeezed.
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

// Whether up to four neighbouring words make up `squeezed`.
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

// What libraries add to a backend's name when they name a class or a function after it.
std::string WithoutSuffix(std::string squeezed) {
  for (absl::string_view suffix : {"config", "wrapper", "module", "forward", "function"}) {
    if (absl::EndsWith(squeezed, suffix)) squeezed.resize(squeezed.size() - suffix.size());
  }
  return squeezed;
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

std::vector<const AttentionBackend*> BackendsOfOps(std::span<const std::string> ops) {
  const auto has = [&](absl::string_view part) {
    return std::any_of(ops.begin(), ops.end(),
                       [&](const std::string& op) { return absl::StrContains(op, part); });
  };
  std::vector<const AttentionBackend*> found;
  for (const AttentionBackend& backend : Table()) {
    if (std::any_of(backend.ops.begin(), backend.ops.end(), has)) found.push_back(&backend);
  }
  if (found.empty() && has("softmax") && has("bmm")) found.push_back(AskedBackend("eager"));
  return found;
}

bool Names(absl::string_view message, const AttentionBackend& backend) {
  const std::vector<std::string> words = Words(message);
  return std::any_of(backend.spoken.begin(), backend.spoken.end(),
                     [&](absl::string_view spoken) { return HasPhrase(words, spoken); });
}

bool NamesOption(absl::string_view message, absl::string_view option) {
  const std::string squeezed = Squeezed(option);
  // "1" or "on" would be found in any message.
  return squeezed.size() >= 3 && HasPhrase(Words(message), squeezed);
}

}  // namespace bkm
