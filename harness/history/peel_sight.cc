// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_sight.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/judge/exception_text.h"

namespace bkm {

std::string StableText(absl::string_view text) {
  std::string kept;
  int open = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '{') ++open;
    if (open > 0) {
      if (c == ']' || c == '}') --open;
      continue;
    }
    const bool in_name = i > 0 && (absl::ascii_isalnum(text[i - 1]) || text[i - 1] == '_');
    if (!absl::ascii_isdigit(c) || in_name) {
      kept.push_back(c);
      continue;
    }
    while (i + 1 < text.size() && absl::ascii_isalnum(text[i + 1])) ++i;
    kept.push_back('#');
  }
  return kept;
}

absl::StatusOr<PeelSight> ReadSight(const RunDirectory& directory, const CellRecord& cell) {
  PeelSight sight{.verdict = *cell.verdict};
  ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, directory.ReadObservation(cell));
  if (!facts) return sight;
  const ObservedException* why = DecidingException(facts->seen());
  if (!why) return sight;
  sight.what = absl::StrCat(why->type, ": ", StableText(FirstLine(why->message)));
  for (const ObservedFrame& frame : why->frames) {
    if (frame.owner == FrameOwner::kEngine || frame.owner == FrameOwner::kLibrary)
      sight.in_library = frame.owner == FrameOwner::kLibrary;
  }
  for (const ObservedFrame& frame : why->frames) {
    if (frame.owner == FrameOwner::kLibrary) break;
    if (frame.owner == FrameOwner::kEngine || frame.owner == FrameOwner::kHarness)
      sight.frames.push_back({frame.file, frame.function, frame.line});
  }
  // Without an engine frame, the harness' own frames do not belong to the engine.
  const bool engine = std::any_of(why->frames.begin(), why->frames.end(), [](const auto& frame) {
    return frame.owner == FrameOwner::kEngine;
  });
  if (!engine) sight.frames.clear();
  return sight;
}

}  // namespace bkm
