// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/subject.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "': ", what, " (write pypi:verl==0.9.1, git:verl@v0.8.0 or path:../my-verl)"));
}

// A name that is safe as a file name and as an argument of git and uv.
bool IsName(absl::string_view name) {
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return !name.empty() && absl::ascii_isalnum(name.front()) && absl::ascii_isalnum(name.back());
}

bool IsVersion(absl::string_view version) {
  for (const char c : version) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '!' && c != '+' && c != '-' && c != '_') {
      return false;
    }
  }
  return !version.empty() && absl::ascii_isalnum(version.front());
}

// Whether git rev-parse takes the text as one revision, not as an option or a range.
bool IsRevision(absl::string_view revision) {
  if (revision.empty() || revision.front() == '-' || absl::StrContains(revision, "..")) {
    return false;
  }
  for (const char c : revision) {
    if (!absl::ascii_isprint(c) || c == ' ' || c == ':' || c == '\\') return false;
  }
  return true;
}

absl::StatusOr<SubjectSpec> ParsePypi(absl::string_view text, absl::string_view rest) {
  const size_t at = rest.find("==");
  const absl::string_view name = rest.substr(0, at);
  if (!IsName(name)) return Wrong(text, "a package name is needed after 'pypi:'");
  if (at == rest.npos) return Wrong(text, "an exact version is needed, as ==VERSION");
  const absl::string_view version = rest.substr(at + 2);
  if (!IsVersion(version)) return Wrong(text, "an exact version is needed after '=='");
  return SubjectSpec{SourceKind::kPypi, std::string(name), std::string(version)};
}

absl::StatusOr<SubjectSpec> ParseGit(absl::string_view text, absl::string_view rest) {
  const size_t at = rest.find('@');
  const absl::string_view name = rest.substr(0, at);
  if (!IsName(name)) return Wrong(text, "a source name is needed after 'git:'");
  if (at == rest.npos) return Wrong(text, "a revision is needed, as @REVISION");
  const absl::string_view revision = rest.substr(at + 1);
  if (!IsRevision(revision)) return Wrong(text, "a single git revision is needed after '@'");
  return SubjectSpec{SourceKind::kGit, std::string(name), std::string(revision)};
}

}  // namespace

std::string SubjectSpec::ToString() const {
  switch (source) {
    case SourceKind::kPypi:
      return absl::StrCat("pypi:", name, "==", revision);
    case SourceKind::kGit:
      return absl::StrCat("git:", name, "@", revision);
    case SourceKind::kPath:
      return absl::StrCat("path:", revision);
  }
  return "";
}

absl::StatusOr<SubjectSpec> ParseSubjectSpec(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "pypi:")) return ParsePypi(text, rest);
  if (absl::ConsumePrefix(&rest, "git:")) return ParseGit(text, rest);
  if (absl::ConsumePrefix(&rest, "path:")) {
    if (rest.empty()) return Wrong(text, "a folder is needed after 'path:'");
    return SubjectSpec{SourceKind::kPath, "", std::string(rest)};
  }
  return Wrong(text, "not an engine or library that can be fetched");
}

}  // namespace bkm
