// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runtime_preparation.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

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

// A request that owns its subjects: a job outlives whoever asked.
struct OwnedRequest {
  explicit OwnedRequest(const RuntimeRequest& asked) : request(asked) {
    if (asked.engine) request.engine = &engine.emplace(*asked.engine);
    if (asked.library) request.library = &library.emplace(*asked.library);
  }
  OwnedRequest(const OwnedRequest&) = delete;
  OwnedRequest& operator=(const OwnedRequest&) = delete;

  RuntimeRequest request;
  std::optional<Subject> engine, library;
};

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

RuntimePreparation::RuntimePreparation(RuntimeProvider& provider, RunObserver& observer,
                                       const Clock& clock, RuntimeLimits limits)
    : provider_(provider),
      observer_(observer),
      clock_(clock),
      limits_(limits),
      pool_({limits.resolutions, limits.environments}, clock) {}

std::string RuntimePreparation::Resolve(const RuntimeRequest& request) {
  const std::string key = provider_.KeyOf(request);
  const auto [known, is_new] = resolutions_.try_emplace(key);
  if (!is_new && (!known->second || known->second->ok())) return key;
  absl::StatusOr<std::optional<RuntimeLock>> lock = provider_.FindLock(request);
  if (!lock.ok() || *lock) {
    known->second = lock.ok() ? Resolution(**std::move(lock)) : Resolution(lock.status());
    return key;
  }
  known->second.reset();
  const auto owned = std::make_shared<const OwnedRequest>(request);
  const auto result = std::make_shared<Resolution>(NotStarted());
  Add(
      kResolutions, [this, owned, result] { *result = provider_.Resolve(owned->request); },
      [this, key, owned, result] {
        resolutions_.at(key) = std::move(*result);
        return ResultText(owned->request, *resolutions_.at(key));
      });
  return key;
}

void RuntimePreparation::CreateEnvironment(const std::shared_ptr<const RuntimeLock>& lock) {
  const std::string key = lock->Key();
  const auto [known, is_new] = environments_.try_emplace(key);
  if (!is_new && (!known->second || known->second->ok())) return;
  if (std::optional<fs::path> python = provider_.FindEnvironment(*lock)) {
    known->second = *std::move(python);
    return;
  }
  known->second.reset();
  const auto result = std::make_shared<absl::StatusOr<fs::path>>(NotStarted());
  Add(
      kEnvironments, [this, lock, result] { *result = provider_.CreateEnvironment(*lock); },
      [this, key, result] {
        environments_.at(key) = std::move(*result);
        return absl::StrCat(environments_.at(key)->ok() ? "created" : "could not create",
                            " environment ", key.substr(0, 12));
      });
}

void RuntimePreparation::Add(Kind kind, std::function<void()> run,
                             std::function<std::string()> ended) {
  Progress& progress = progress_[kind];
  if (IsDone(progress)) progress = {.start = clock_.Elapsed()};
  ++progress.added;
  pool_.Add({.kind = kind,
             .run = std::move(run),
             .ended = [this, &progress, ended = std::move(ended)](absl::Duration took) {
               ++progress.ended;
               const int64_t left_s =
                   absl::ToInt64Seconds((clock_.Elapsed() - progress.start) *
                                        (progress.added - progress.ended) / progress.ended);
               observer_.OnSetUp(absl::StrFormat(
                   "%s in %.1f s, %d of %d%s", ended(), absl::ToDoubleSeconds(took), progress.ended,
                   progress.added, left_s < 5 ? "" : absl::StrCat(", about ", left_s, " s left")));
             }});
}

void RuntimePreparation::Announce(Kind kind) {
  Progress& progress = progress_[kind];
  if (progress.announced > 0 || IsDone(progress)) return;
  progress.announced = progress.added;
  const char* what = kind == kResolutions ? "resolving " : "creating ";
  const char* noun = kind == kResolutions ? " runtime" : " environment";
  const int at_once =
      std::min(progress.added, kind == kResolutions ? limits_.resolutions : limits_.environments);
  observer_.OnSetUp(absl::StrCat(what, progress.added, noun, progress.added == 1 ? "" : "s",
                                 at_once == 1 ? "" : absl::StrCat(" (", at_once, " at once)")));
}

void RuntimePreparation::AnnounceShared() {
  if (resolving() || shared_ == resolutions_.size()) return;
  shared_ = resolutions_.size();
  std::set<std::string> keys;
  int locks = 0;
  for (const auto& [key, resolution] : resolutions_) {
    if (!resolution || !resolution->ok()) continue;
    const RuntimeLock* lock = std::get_if<RuntimeLock>(&**resolution);
    if (lock == nullptr) continue;
    ++locks;
    keys.insert(lock->Key());
  }
  if (keys.size() < static_cast<size_t>(locks))
    observer_.OnSetUp(absl::StrCat(locks, " runtimes have ", keys.size(),
                                   " different sets of packages: equal ones share an environment"));
}

const Resolution* RuntimePreparation::resolution(const std::string& key) const {
  const std::optional<Resolution>& known = resolutions_.at(key);
  return known ? &*known : nullptr;
}

const absl::StatusOr<fs::path>* RuntimePreparation::environment(const std::string& lock_key) const {
  const std::optional<absl::StatusOr<fs::path>>& known = environments_.at(lock_key);
  return known ? &*known : nullptr;
}

bool RuntimePreparation::Advance(absl::Duration wait) {
  Announce(kResolutions);
  Announce(kEnvironments);
  AnnounceShared();
  return pool_.Advance(wait);
}

void RuntimePreparation::Finish() {
  pool_.Stop();
  while (pool_.busy()) pool_.Advance(absl::Milliseconds(100));
  progress_ = {};
  for (auto& [key, resolution] : resolutions_) {
    if (!resolution) resolution = NotStarted();
  }
  for (auto& [key, environment] : environments_) {
    if (!environment) environment = NotStarted();
  }
}

}  // namespace bkm
