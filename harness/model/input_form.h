// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_INPUT_FORM_H_
#define HARNESS_MODEL_INPUT_FORM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// A word of Probe::input, which says how a model is told where documents are. The first word is
// "packed" (one document after the other in a row, positions that begin anew in each) or "padded"
// (a row for each, padded on the right, and an attention mask: verl's use_remove_padding=False).
// Further ones change it: "packed+tail+mask".
struct InputWord {
  const char* name;
  const char* of;    // the first word that it changes
  const char* says;  // for readers, a noun: "input padded on the left"
};

// In the order in which they are written.
const std::vector<InputWord>& InputWords();

// The words in their order. An error says what is wrong, without the text's origin.
absl::StatusOr<std::string> InputFormOf(absl::string_view text);

// The words of a form; "packed" has none that a kind of engines must offer.
std::vector<std::string> WordsBesidePacked(absl::string_view form);

}  // namespace bkm

#endif  // HARNESS_MODEL_INPUT_FORM_H_
