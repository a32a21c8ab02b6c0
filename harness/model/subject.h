// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_SUBJECT_H_
#define HARNESS_MODEL_SUBJECT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/ending.h"
namespace bkm {

enum class SourceKind { kPypi, kGit, kPath };

// One engine or library at one version: `pypi:verl==0.9.1`, `git:verl@v0.8.0` or `path:../my-verl`.
struct SubjectSpec {
  SourceKind source = SourceKind::kPypi;
  std::string name;      // PyPI package or git source; empty for a path until resolved
  std::string revision;  // pypi: version; git: any revision; path: folder

  // The form that ParseSubjectSpec reads. For a resolved spec it is exact, and except for paths the
  // same on every machine.
  std::string ToString() const;
  bool operator==(const SubjectSpec&) const = default;
  auto operator<=>(const SubjectSpec&) const = default;
};

// The error says what is wrong and shows the three forms.
absl::StatusOr<SubjectSpec> ParseSubjectSpec(absl::string_view text);

// Why no cell of a subject can run: a fault in the subject's own content. It is the result of these
// cells and does not concern the others.
struct SubjectFault {
  EndingKind ending = EndingKind::kTreeNotAllowed;  // of its cells
  std::string message;
  bool operator==(const SubjectFault&) const = default;
};

// An engine or library whose source tree is on disk.
struct Subject {
  SubjectSpec spec;            // resolved: exact version, 40 hex digits, or absolute path
  std::string label;           // the revision as the user wrote it: "v0.8.0", "0.9.1"
  std::string date;            // YYYY-MM-DD (UTC) of the commit or upload; empty for a path
  std::string title;           // first line of the commit message; empty unless git
  std::filesystem::path tree;  // goes on sys.path; read-only
  std::string package;         // import name
  std::vector<std::string> requirements;  // declared, PEP 508, in the declared order
  std::string content;                    // equal for equal tree contents
  // If set, the tree may be missing, and there are no requirements.
  std::optional<SubjectFault> fault = {};
};

}  // namespace bkm

#endif  // HARNESS_MODEL_SUBJECT_H_
