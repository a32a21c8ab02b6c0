// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runtime_preparation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "harness/runner/concurrent_jobs.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

absl::Status NotStarted() { return absl::CancelledError("interrupted"); }

// The last day before the cutoff, which is a midnight: " as of 2026-06-30".
std::string AsOf(const std::string& cutoff) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, cutoff, &time, nullptr)) return "";
  return absl::FormatTime(" as of %Y-%m-%d", time - absl::Seconds(1), absl::UTCTimeZone());
}

std::string PairText(const RuntimeRequest& request) {
  std::string text;
  for (const Subject* subject : {request.engine, request.library}) {
    if (subject) absl::StrAppend(&text, text.empty() ? " for " : " x ", subject->spec.ToString());
  }
  return text;
}

std::string ResultText(const RuntimeRequest& request, const Resolution& resolution) {
  const std::string& name = request.policy.name;
  if (!resolution.ok()) return absl::StrCat("could not resolve ", name, PairText(request));
  if (std::holds_alternative<NoSolution>(*resolution))
    return absl::StrCat("found no solution for ", name, PairText(request));
  return absl::StrCat("resolved ", name, AsOf(std::get<RuntimeLock>(*resolution).cutoff));
}

}  // namespace

struct RuntimePreparation::Work {
  const char* what;  // "resolving"
  const char* noun;  // "runtime"
  size_t count;
  int at_once;
  std::function<void(size_t)> run;
  std::function<std::string(size_t)> result;  // what a job came to, in words
};

void RuntimePreparation::Run(const Work& work, const Stop& stop) {
  if (work.count == 0) return;
  const size_t at_once = std::min(work.count, static_cast<size_t>(work.at_once));
  observer_.OnSetUp(absl::StrCat(work.what, " ", work.count, " ", work.noun,
                                 work.count == 1 ? "" : "s",
                                 work.count == 1 ? "" : absl::StrCat(" (", at_once, " at once)")));
  size_t done = 0;
  const auto ended = [&](size_t job, absl::Duration took) {
    observer_.OnSetUp(absl::StrFormat("%s in %.1f s, %d of %d", work.result(job),
                                      absl::ToDoubleSeconds(took), ++done, work.count));
  };
  RunConcurrently(
      {.count = work.count, .at_once = work.at_once, .run = work.run, .ended = ended, .stop = stop},
      clock_);
}

Resolutions RuntimePreparation::Resolve(const std::vector<RuntimeRequest>& requests,
                                        const Stop& stop) {
  Resolutions resolutions;
  std::vector<const RuntimeRequest*> unresolved;  // one for each key
  for (const RuntimeRequest& request : requests) {
    resolutions.keys.push_back(provider_.KeyOf(request));
    const auto [known, is_new] = resolutions.by_key.emplace(resolutions.keys.back(), NotStarted());
    if (!is_new) continue;
    absl::StatusOr<std::optional<RuntimeLock>> lock = provider_.FindLock(request);
    if (!lock.ok()) {
      known->second = lock.status();
    } else if (*lock) {
      known->second = **std::move(lock);
    } else {
      unresolved.push_back(&request);
    }
  }
  std::vector<Resolution> results(unresolved.size(), Resolution(NotStarted()));
  Run({.what = "resolving",
       .noun = "runtime",
       .count = results.size(),
       .at_once = limits_.resolutions,
       .run = [&](size_t i) { results[i] = provider_.Resolve(*unresolved[i]); },
       .result = [&](size_t i) { return ResultText(*unresolved[i], results[i]); }},
      stop);
  for (size_t i = 0; i < results.size(); ++i)
    resolutions.by_key.at(provider_.KeyOf(*unresolved[i])) = std::move(results[i]);
  return resolutions;
}

std::map<std::string, absl::StatusOr<fs::path>> RuntimePreparation::CreateEnvironments(
    const std::vector<const RuntimeLock*>& locks, const Stop& stop) {
  std::map<std::string, absl::StatusOr<fs::path>> environments;
  std::vector<const RuntimeLock*> missing;  // one for each key
  for (const RuntimeLock* lock : locks) {
    const auto [known, is_new] = environments.emplace(lock->Key(), NotStarted());
    if (!is_new) continue;
    if (std::optional<fs::path> python = provider_.FindEnvironment(*lock)) {
      known->second = *std::move(python);
    } else {
      missing.push_back(lock);
    }
  }
  std::vector<absl::StatusOr<fs::path>> results(missing.size(), NotStarted());
  Run({.what = "creating",
       .noun = "environment",
       .count = results.size(),
       .at_once = limits_.environments,
       .run = [&](size_t i) { results[i] = provider_.CreateEnvironment(*missing[i]); },
       .result =
           [&](size_t i) {
             return absl::StrCat(results[i].ok() ? "created" : "could not create", " environment ",
                                 missing[i]->Key().substr(0, 12));
           }},
      stop);
  for (size_t i = 0; i < results.size(); ++i)
    environments.at(missing[i]->Key()) = std::move(results[i]);
  return environments;
}

}  // namespace bkm
