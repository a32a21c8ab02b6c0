// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUNTIME_PROVIDER_H_
#define HARNESS_RUNNER_RUNTIME_PROVIDER_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "harness/runtime/environment_creator.h"
#include "harness/runtime/runtime_resolver.h"

namespace bkm {

using Resolution = absl::StatusOr<std::variant<RuntimeLock, NoSolution>>;

// Makes locks and environments, one at a time. Thread-safe.
class RuntimeProvider {
 public:
  virtual ~RuntimeProvider() = default;
  // Requests with equal keys have the same resolution.
  virtual std::string KeyOf(const RuntimeRequest& request) const = 0;
  // The lock, if it needs no resolver.
  virtual absl::StatusOr<std::optional<RuntimeLock>> FindLock(const RuntimeRequest& request) = 0;
  // May take minutes, as may CreateEnvironment.
  virtual Resolution Resolve(const RuntimeRequest& request) = 0;
  // The environment's python, if the environment exists.
  virtual std::optional<std::filesystem::path> FindEnvironment(const RuntimeLock& lock) const = 0;
  virtual absl::StatusOr<std::filesystem::path> CreateEnvironment(const RuntimeLock& lock) = 0;
};

// Makes them by uv and keeps them in the cache.
class UvRuntimeProvider : public RuntimeProvider {
 public:
  UvRuntimeProvider(
      const SourceCatalog& catalog, const Uv& uv, const std::filesystem::path& cache,
      const std::filesystem::path& python,
      std::function<void(const std::string&)> report = [](const std::string&) {})
      : resolver_(catalog, uv, {.cache = cache, .python = python, .report = std::move(report)}),
        environments_(uv, cache, python) {}

  std::string KeyOf(const RuntimeRequest& request) const override {
    return resolver_.KeyOf(request);
  }
  absl::StatusOr<std::optional<RuntimeLock>> FindLock(const RuntimeRequest& request) override {
    return resolver_.Find(request);
  }
  Resolution Resolve(const RuntimeRequest& request) override { return resolver_.Resolve(request); }
  std::optional<std::filesystem::path> FindEnvironment(const RuntimeLock& lock) const override {
    return environments_.Find(lock);
  }
  absl::StatusOr<std::filesystem::path> CreateEnvironment(const RuntimeLock& lock) override {
    return environments_.Create(lock);
  }

  const RuntimeResolver& resolver() const { return resolver_; }

 private:
  RuntimeResolver resolver_;
  const EnvironmentCreator environments_;
};

// The locks of another provider, for cells that run on another machine: no environment is made.
class LocksOnly : public RuntimeProvider {
 public:
  explicit LocksOnly(RuntimeProvider& provider) : provider_(provider) {}

  std::string KeyOf(const RuntimeRequest& request) const override {
    return provider_.KeyOf(request);
  }
  absl::StatusOr<std::optional<RuntimeLock>> FindLock(const RuntimeRequest& request) override {
    return provider_.FindLock(request);
  }
  Resolution Resolve(const RuntimeRequest& request) override { return provider_.Resolve(request); }
  // The python of no environment.
  std::optional<std::filesystem::path> FindEnvironment(const RuntimeLock&) const override {
    return std::filesystem::path();
  }
  absl::StatusOr<std::filesystem::path> CreateEnvironment(const RuntimeLock&) override {
    return std::filesystem::path();
  }

 private:
  RuntimeProvider& provider_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUNTIME_PROVIDER_H_
