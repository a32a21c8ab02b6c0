// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_RUNTIME_LOCK_H_
#define HARNESS_RUNTIME_RUNTIME_LOCK_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

struct LockedPackage {
  std::string name;  // normalised
  std::string version;
  std::vector<std::string> sha256;  // of the files an installer may choose; empty: existing runtime
  bool operator==(const LockedPackage&) const = default;
};

// Every third-party package of a runtime, by version and hash. Without paths and registry hosts, so
// that a lock means the same packages on every machine.
struct RuntimeLock {
  std::string runtime;                    // the policy's name
  std::string policy;                     // as-of, newest, locked, existing
  std::string python;                     // "3.11"
  std::string cutoff;                     // RFC 3339: later uploads were ignored; empty: none were
  std::vector<std::string> exempt;        // packages that the cutoff does not apply to
  std::string torch_backend;              // where uv takes torch from unless told otherwise
  std::vector<std::string> requirements;  // the resolver's input, in order
  std::vector<std::string> relaxed;       // packages whose pins were dropped, sorted
  std::vector<LockedPackage> packages;    // sorted by name
  std::filesystem::path interpreter;      // of an existing runtime on this machine, else empty
  bool operator==(const RuntimeLock&) const = default;

  // SHA-256 of Python's version and the packages. Locks with equal keys share one environment,
  // however they were resolved.
  std::string Key() const;
  // Empty when the package is not in the lock.
  std::string VersionOf(absl::string_view package) const;
  // A requirements.txt with hashes, for pip and uv.
  std::string RequirementsText() const;
};

// The lock of an existing interpreter. `packages` maps normalised names to versions.
RuntimeLock ExistingLock(const std::string& runtime, const std::filesystem::path& interpreter,
                         const std::string& python,
                         const std::map<std::string, std::string>& packages);

Json ToJson(const RuntimeLock& lock);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<RuntimeLock> RuntimeLockFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_RUNTIME_LOCK_H_
