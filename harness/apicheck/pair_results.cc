// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/pair_results.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<const EngineKind*> TakeKind(std::vector<std::string>& engines) {
  const EngineKind* kind = nullptr;
  for (std::string& engine : engines) {
    const size_t at = engine.find('@');
    const size_t colon = engine.find(':');
    const EngineKind* named = nullptr;
    if (at != engine.npos && at < colon) {
      const std::string name = engine.substr(0, at);
      named = FindEngineKind(name);
      if (!named) {
        return absl::InvalidArgumentError(absl::StrCat("--engine: unknown kind '", name, "'",
                                                       DidYouMean(name, EngineKindNames())));
      }
      engine.erase(0, at + 1);
    }
    ASSIGN_OR_RETURN(const SubjectSpec spec, ParseSubjectSpec(engine));
    for (const EngineKind& each : EngineKinds()) {
      const bool fits = spec.source == SourceKind::kPath || each.engine_source == spec.name;
      if (!named && fits && !each.entry_modules.empty()) named = &each;
    }
    if (!named || named->entry_modules.empty() || (kind && kind != named)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--engine ", engine, ": there is no static check for it",
                       kind && named ? " together with the others"
                                     : " (only engines whose library is a "
                                       "source tree can be checked)"));
    }
    kind = named;
  }
  return kind;
}

absl::StatusOr<std::vector<PairResult>> CheckPairs(ApiCheck& check,
                                                   const std::vector<CheckedVersion>& engines,
                                                   const std::vector<CheckedVersion>& libraries) {
  std::vector<Tree> rows;
  std::vector<Tree> columns;
  for (const CheckedVersion& engine : engines) rows.push_back(engine.tree);
  for (const CheckedVersion& library : libraries) columns.push_back(library.tree);
  ASSIGN_OR_RETURN(const auto plane, check.Plane(rows, columns));
  std::vector<PairResult> pairs;
  for (size_t i = 0; i < engines.size(); ++i) {
    for (size_t j = 0; j < libraries.size(); ++j) {
      PairResult pair{engines[i], libraries[j], plane[i][j], {}};
      if (pair.grade > PairGrade::kNothing) {
        ASSIGN_OR_RETURN(pair.violations, check.Check(rows[i], columns[j]));
      }
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

Json ToJson(const EngineKind& kind, const std::vector<PairResult>& pairs) {
  Json list = Json::array();
  for (const PairResult& pair : pairs) {
    Json violations = Json::array();
    for (const Violation& violation : pair.violations) violations.push_back(ToJson(violation));
    list.push_back({{"engine_subject", pair.engine.spec.ToString()},
                    {"engine_label", pair.engine.label},
                    {"library_subject", pair.library.spec.ToString()},
                    {"library_label", pair.library.label},
                    {"grade", std::string(Name(pair.grade))},
                    {"violations", violations}});
  }
  return {{"schema", 1}, {"engine", kind.name}, {"pairs", list}};
}

}  // namespace bkm
