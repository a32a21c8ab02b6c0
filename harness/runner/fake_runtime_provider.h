// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_FAKE_RUNTIME_PROVIDER_H_
#define HARNESS_RUNNER_FAKE_RUNTIME_PROVIDER_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runner/runtime_provider.h"

namespace bkm {

// The lock of a request, and of an environment that holds one package.
inline RuntimeLock LockOf(const std::string& package) {
  return {.runtime = "cpu",
          .python = "3.11",
          .cutoff = "2026-07-01T00:00:00Z",
          .packages = {{package, "1", {"ab"}}}};
}

// Answers by the request's torch; "2.1+a" and "2.1+b" have the lock of "2.1". A call lasts until
// `together` calls have run at once.
class FakeRuntimeProvider : public RuntimeProvider {
 public:
  std::string KeyOf(const RuntimeRequest& request) const override { return request.torch; }
  absl::StatusOr<std::optional<RuntimeLock>> FindLock(const RuntimeRequest& request) override {
    if (!cached.contains(request.torch)) return std::nullopt;
    return LockOf(request.torch);
  }
  Resolution Resolve(const RuntimeRequest& request) override {
    Call(request.torch);
    if (request.torch == "offline") return absl::UnavailableError("no network");
    if (request.torch == "conflict") return NoSolutionOf(request, "numpy<2 against numpy>=2");
    return LockOf(request.torch.substr(0, request.torch.find('+')));
  }
  std::optional<std::filesystem::path> FindEnvironment(const RuntimeLock& lock) const override {
    if (!cached.contains(lock.packages[0].name)) return std::nullopt;
    return "/cached/python";
  }
  absl::StatusOr<std::filesystem::path> CreateEnvironment(const RuntimeLock& lock) override {
    const std::string& name = lock.packages[0].name;
    Call(name);
    if (name == "unbuildable") return absl::AbortedError("it does not build");
    return std::filesystem::path("/made") / name;
  }

  // From now on, calls for `held` end.
  void Release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  std::set<std::string> cached;
  std::set<std::string> held;  // calls for these wait for Release
  size_t together = 1;
  size_t most = 0;                 // calls that ran at once
  std::vector<std::string> calls;  // in the order of their starts

 private:
  void Call(const std::string& name) {
    std::unique_lock<std::mutex> lock(mutex_);
    calls.push_back(name);
    most = std::max(most, ++running_);
    changed_.notify_all();
    // Generous: only a broken implementation waits as long.
    changed_.wait_for(lock, std::chrono::seconds(20),
                      [&] { return most >= together && (released_ || !held.contains(name)); });
    --running_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
  bool released_ = false;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_FAKE_RUNTIME_PROVIDER_H_
