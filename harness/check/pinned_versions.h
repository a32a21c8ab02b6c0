// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_PINNED_VERSIONS_H_
#define HARNESS_CHECK_PINNED_VERSIONS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// What a file says of one package.
struct VersionPin {
  std::string name;           // normalised (PEP 503)
  std::string version;        // the only one that it allows; empty: see `why_open`
  std::string commit;         // 40 hex digits of a git source
  std::string why_open = {};  // why it has no one version: "a range (>=0.8)"; empty if it has one
  int line = 0;               // in the file, from 1; 0: not from a file

  bool is_exact() const { return why_open.empty(); }
};

// The versions that a file, or an environment, pins.
struct PinnedVersions {
  std::string origin;  // for messages
  std::vector<VersionPin> packages;
  // Lines that may name more packages and are not followed: "line 3: -r base.txt is not read".
  std::vector<std::string> not_read = {};

  // What is said of a package; nullptr where nothing is. A package with several entries that differ
  // is open.
  const VersionPin* Find(absl::string_view name) const;
};

// Reads a requirements file (pip), uv.lock or another lock with [[package]], pylock.toml (PEP 751)
// or pyproject.toml (PEP 621, with its extras and dependency groups). Nothing is guessed: a range,
// a marker, a folder or a URL without a commit leaves the package open. An error has one sentence
// with the file and the line.
absl::StatusOr<PinnedVersions> ReadPinnedVersions(const std::filesystem::path& file);

// The same of a text; `origin` names it and decides, by its end (".toml", ".lock"), how it is read.
absl::StatusOr<PinnedVersions> PinnedVersionsOf(const std::string& text, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_CHECK_PINNED_VERSIONS_H_
