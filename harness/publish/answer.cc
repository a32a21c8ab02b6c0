// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/answer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/rows.h"

namespace bkm {
namespace {

constexpr size_t kMostOthers = 6;

bool IsRelease(const PublishedVersion& version) {
  return absl::StartsWith(version.subject, "pypi:");
}

bool IsOfReleases(const PublishedRow& row) {
  return (!HasEngine(row) || IsRelease(row.engine_version)) && IsRelease(row.library_to);
}

Answer AnswerFor(const EngineKind& kind, const PublishedTable& table) {
  Answer answer{.engine = kind.name};
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    ++answer.rows;
    answer.release_rows += IsOfReleases(row);
    if (!Works(row)) continue;
    if (!answer.best) answer.best = &row;
    if (!answer.releases && IsOfReleases(row)) answer.releases = &row;
  }
  for (const PublishedRow& row : table.rows) {
    const bool fits = row.engine == kind.name && &row != answer.best &&
                      (!answer.best || row.engine_version == answer.best->engine_version);
    if (fits && answer.others.size() < kMostOthers) answer.others.push_back(&row);
  }
  return answer;
}

}  // namespace

std::vector<Answer> AnswersOf(const PublishedTable& table) {
  std::vector<Answer> answers;
  for (const EngineKind& kind : EngineKinds()) {
    if (kind.judged_by_ending_only) continue;
    Answer answer = AnswerFor(kind, table);
    if (answer.rows > 0) answers.push_back(std::move(answer));
  }
  return answers;
}

std::string PairLabel(const PublishedRow& row) {
  const EngineKind* kind = FindEngineKind(row.engine);
  const std::string library = absl::StrCat(row.library, " ", ShortLabel(row.library_to));
  if (!kind || !HasEngine(row)) return library;
  return absl::StrCat(kind->engine_source, " ", ShortLabel(row.engine_version), " with ", library);
}

}  // namespace bkm
