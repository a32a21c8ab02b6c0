// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/input_form.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"

namespace bkm {
namespace {

constexpr char kPacked[] = "packed";
constexpr char kPadded[] = "padded";

}  // namespace

const std::vector<InputWord>& InputWords() {
  static const auto& words = *new std::vector<InputWord>{
      {kPacked, kPacked, "packed input"},
      {"rows", kPacked, "packed input in two rows"},
      // As a collator's pad_to_multiple_of; positions of padding are 0.
      {"tail", kPacked, "packed rows that end with padding"},
      // cu_seq_lens_q and _k, max_length_q and _k: transformers' DataCollatorWithFlattening with
      // return_flash_attn_kwargs.
      {"lengths", kPacked, "lengths of packed documents"},
      {"mask", kPacked, "an attention mask over packed rows"},
      {kPadded, kPadded, "padded input"},
      {"left", kPadded, "input padded on the left"},
      {"positions", kPadded, "positions of padded input"},
  };
  return words;
}

absl::StatusOr<std::string> InputFormOf(absl::string_view text) {
  std::vector<std::string> given = absl::StrSplit(text, '+');
  const std::string first = given[0];
  if (first != kPacked && first != kPadded)
    return absl::InvalidArgumentError(
        absl::StrCat("'", first, "' is neither packed nor padded, which comes first"));
  std::vector<std::string> form, known;
  for (const InputWord& word : InputWords()) {
    if (word.of != first) continue;
    known.push_back(word.name);
    const auto found = std::find(given.begin(), given.end(), word.name);
    if (found == given.end()) continue;
    form.push_back(*found);
    given.erase(found);
  }
  if (given.empty()) return absl::StrJoin(form, "+");
  return absl::InvalidArgumentError(absl::StrCat("'", given[0], "' does not go with ", first,
                                                 " or stands twice (", absl::StrJoin(known, "+"),
                                                 ")", DidYouMean(given[0], known)));
}

std::vector<std::string> WordsBesidePacked(absl::string_view form) {
  std::vector<std::string> words = absl::StrSplit(form, '+');
  if (words[0] == kPacked) words.erase(words.begin());
  return words;
}

}  // namespace bkm
