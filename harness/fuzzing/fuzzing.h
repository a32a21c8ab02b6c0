// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// What the fuzz targets (NAME_fuzz.cc) of all rooms share. A target ends the process when a rule is
// broken: with --config=fuzz that is a finding of libFuzzer, else a failed test of the corpus.
#ifndef HARNESS_FUZZING_FUZZING_H_
#define HARNESS_FUZZING_FUZZING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "harness/base/check.h"
#include "harness/base/json.h"

namespace bkm {

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return absl::string_view(reinterpret_cast<const char*>(data), size);
}

// An error says something, and its length is in proportion to what it complains about: a value is
// quoted in it at most a few times, and each byte takes up to six when it is escaped.
inline void ExpectUsableError(const absl::Status& status, size_t input_size) {
  HARNESS_CHECK(!status.message().empty()) << "an error without a message";
  HARNESS_CHECK(status.message().size() < 16 * input_size + 4096)
      << "a message of " << status.message().size() << " bytes for " << input_size;
}

// Reads `text` as JSON and then with `read`. What was read is written and read as the same again.
template <typename Read>
void ExpectRoundTrip(absl::string_view text, const Read& read) {
  const absl::StatusOr<Json> json = ParseJson(text, "input");
  if (!json.ok()) return ExpectUsableError(json.status(), text.size());
  const auto value = read(*json);
  if (!value.ok()) return ExpectUsableError(value.status(), text.size());
  const std::string written = ToText(ToJson(*value));
  const absl::StatusOr<Json> again = ParseJson(written, "what was written");
  HARNESS_CHECK(again.ok()) << again.status() << "\n" << written;
  const auto same = read(*again);
  HARNESS_CHECK(same.ok()) << same.status() << "\n" << written;
  HARNESS_CHECK(ToText(ToJson(*same)) == written) << written << ToText(ToJson(*same));
}

}  // namespace bkm

// Called for each input. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#endif  // HARNESS_FUZZING_FUZZING_H_
