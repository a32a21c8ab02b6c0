// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_SUBJECT_H_
#define HARNESS_MODEL_SUBJECT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

enum class SourceKind { kPypi, kGit, kPath };

// Names one engine or library at one version: `pypi:verl==0.9.1`, `git:verl@v0.8.0`,
// `path:../my-verl`.
struct SubjectSpec {
  SourceKind source = SourceKind::kPypi;
  std::string name;      // of the PyPI package or the git source; empty for a path until resolved
  std::string revision;  // pypi: version; git: anything git takes; path: the folder

  // The form that ParseSubjectSpec reads. Of a resolved spec: exact and, but for paths, the same on
  // every machine.
  std::string ToString() const;
  bool operator==(const SubjectSpec&) const = default;
  auto operator<=>(const SubjectSpec&) const = default;
};

// The error says what is wrong with `text` and shows the three forms.
absl::StatusOr<SubjectSpec> ParseSubjectSpec(absl::string_view text);

// An engine or library whose source tree is on disk.
struct Subject {
  SubjectSpec spec;            // resolved: exact version, 40 hex digits, or absolute path
  std::string label;           // the revision as the user wrote it: "v0.8.0", "0.9.1"
  std::string date;            // YYYY-MM-DD (UTC) of commit or upload; empty for a path
  std::string title;           // first line of the commit message; empty unless git
  std::filesystem::path tree;  // goes on sys.path; read-only to everybody
  std::string package;         // import name
  std::vector<std::string> requirements;  // what it declares, PEP 508, in its own order
  std::string content;  // hash of the tree's identity: the same content has the same one
};

}  // namespace bkm

#endif  // HARNESS_MODEL_SUBJECT_H_
