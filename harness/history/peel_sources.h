// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_SOURCES_H_
#define HARNESS_HISTORY_PEEL_SOURCES_H_

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/api_session.h"
#include "harness/search/history_axis.h"
#include "harness/search/peel.h"

namespace bkm {

// The static check of a pair whose library has variants: what breaks, and since which commit.
class PeelSources {
 public:
  // `api` and `axis` must outlive the result.
  static absl::StatusOr<PeelSources> Open(ApiSession& api, const HistoryAxis& axis);

  // What certainly fails with the library in `folder`.
  absl::StatusOr<std::vector<Violation>> BreaksIn(const std::filesystem::path& folder);
  // The first commit of the mainline up to `tip` that has the break.
  absl::StatusOr<PeelCulprit> FindCulprit(const Violation& broken, int tip);

 private:
  explicit PeelSources(const HistoryAxis& axis) : axis_(axis) {}

  // All violations at a commit of the history as it is; null where it has no package.
  absl::StatusOr<const std::vector<Violation>*> BreaksAt(int commit);

  const HistoryAxis& axis_;
  Versions* versions_ = nullptr;
  ApiCheck* check_ = nullptr;
  Tree engine_;
  std::map<int, std::optional<std::vector<Violation>>> breaks_;  // by content
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_SOURCES_H_
