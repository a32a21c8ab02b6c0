// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/pinned_versions.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace {

constexpr size_t kCommitDigits = 40;

// The commit at the end of a URL ("...@<40 hex>" or "...#<40 hex>"); empty if there is none.
std::string CommitIn(absl::string_view url) {
  const size_t at = url.find_last_of("@#");
  const absl::string_view last = at == absl::string_view::npos ? "" : url.substr(at + 1);
  const bool is_commit = last.size() == kCommitDigits &&
                         std::all_of(last.begin(), last.end(),
                                     [](unsigned char c) { return absl::ascii_isxdigit(c); });
  return is_commit ? absl::AsciiStrToLower(last) : "";
}

void SetSource(VersionPin& package, absl::string_view url) {
  package.commit = CommitIn(url.substr(0, url.find(" ")));
  if (package.commit.empty()) package.why_open = absl::StrCat("a URL without a commit (", url, ")");
}

// Reads "name[extra] ==1.2 ; marker" (PEP 508). False if it does not begin with a name.
bool ReadRequirement(absl::string_view text, VersionPin& package) {
  const auto is_name = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const auto end = std::find_if_not(text.begin(), text.end(), is_name);
  package.name = NormalizedName(text.substr(0, end - text.begin()));
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(end - text.begin()));
  if (package.name.empty() || !absl::ascii_isalnum(static_cast<unsigned char>(text[0])))
    return false;
  if (absl::StartsWith(rest, "[")) {
    const size_t close = rest.find(']');
    if (close == absl::string_view::npos) return false;
    rest = absl::StripLeadingAsciiWhitespace(rest.substr(close + 1));
  }
  if (absl::StartsWith(rest, "@")) {
    SetSource(package, absl::StripAsciiWhitespace(rest.substr(1)));
    return true;
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits(';', 1));
  const absl::string_view marker = absl::StripAsciiWhitespace(parts.second);
  absl::string_view wanted = absl::StripAsciiWhitespace(parts.first);
  if (absl::ConsumePrefix(&wanted, "(") && !absl::ConsumeSuffix(&wanted, ")")) return false;
  if (!wanted.empty() && absl::string_view("=<>!~").find(wanted[0]) == absl::string_view::npos)
    return false;
  absl::string_view version = wanted;
  const bool is_pin =
      (absl::ConsumePrefix(&version, "===") || absl::ConsumePrefix(&version, "==")) &&
      !absl::StrContains(version, ',') && !absl::EndsWith(version, "*");
  if (wanted.empty())
    package.why_open = "no version";
  else if (!is_pin)
    package.why_open = absl::StrCat("a range (", wanted, ")");
  else
    package.version = std::string(absl::StripAsciiWhitespace(version));
  if (!marker.empty()) {
    package.version.clear();
    package.why_open = absl::StrCat("a marker (only where ", marker, ")");
  }
  return true;
}

absl::Status BadLine(const std::string& origin, int line, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": line ", line, ": ", ShownText(std::string(what))));
}

// The line without its comment and its options for one package, such as --hash.
absl::string_view WithoutComment(absl::string_view line) {
  for (const char* start : {" #", "\t#", " --"}) line = line.substr(0, line.find(start));
  return absl::StartsWith(line, "#") ? "" : absl::StripAsciiWhitespace(line);
}

absl::StatusOr<PinnedVersions> OfRequirements(const std::string& text, const std::string& origin) {
  PinnedVersions pins{.origin = origin};
  std::string joined;
  int line = 0, first = 0;
  for (absl::string_view part : absl::StrSplit(text, '\n')) {
    ++line;
    if (joined.empty()) first = line;
    part = absl::StripSuffix(part, "\r");
    const bool goes_on = absl::EndsWith(part, "\\");
    absl::StrAppend(&joined, goes_on ? absl::StripSuffix(part, "\\") : part);
    if (goes_on) continue;
    const std::string whole = std::exchange(joined, "");
    const absl::string_view entry = WithoutComment(whole);
    if (entry.empty()) continue;
    if (entry[0] == '-') {
      const bool names_more =
          absl::StartsWith(entry, "-r") || absl::StartsWith(entry, "-c") ||
          absl::StartsWith(entry, "-e") || absl::StartsWith(entry, "--requirement") ||
          absl::StartsWith(entry, "--constraint") || absl::StartsWith(entry, "--editable");
      if (names_more)
        pins.not_read.push_back(absl::StrCat("line ", first, ": ", entry, " is not read"));
      continue;
    }
    const absl::string_view name = entry.substr(0, entry.find_first_of(" @;"));
    const bool is_place = absl::StartsWith(name, ".") || absl::StartsWith(name, "/") ||
                          absl::StrContains(name, "://") || absl::EndsWith(name, ".whl");
    if (is_place) {
      pins.not_read.push_back(absl::StrCat("line ", first, ": ", entry, " is not read"));
      continue;
    }
    VersionPin package{.line = first};
    if (!ReadRequirement(entry, package))
      return BadLine(
          origin, first,
          absl::StrCat("'", entry.substr(0, 80), "' is not a requirement, such as verl==0.9.1"));
    pins.packages.push_back(std::move(package));
  }
  return pins;
}

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

std::string StringIn(const toml::table& table, absl::string_view key) {
  return table[std::string_view(key.data(), key.size())].value_or(std::string());
}

// An entry of uv.lock or of pylock.toml.
VersionPin OfLock(const toml::table& entry) {
  VersionPin package{.name = NormalizedName(StringIn(entry, "name")),
                     .version = StringIn(entry, "version"),
                     .line = LineOf(entry)};
  // Only an index has the version that it names: what comes from elsewhere may be anything.
  if (const toml::table* source = entry["source"].as_table()) {
    const std::string url = StringIn(*source, "git");                    // uv.lock
    const std::string commit = StringIn(*source, "resolved_reference");  // poetry.lock
    const bool is_index = source->contains("registry") || StringIn(*source, "type") == "legacy";
    if (!url.empty())
      SetSource(package, url);
    else if (!commit.empty())
      SetSource(package, absl::StrCat("@", commit));
    else if (!is_index)
      package.why_open = "a folder or a URL, not an index";
  }
  if (const toml::table* vcs = entry["vcs"].as_table()) {  // pylock.toml
    package.commit = CommitIn(absl::StrCat("@", StringIn(*vcs, "commit-id")));
    if (package.commit.empty()) package.why_open = "a repository without a commit";
  }
  if (entry.contains("directory") || entry.contains("archive"))
    package.why_open = "a folder or a URL, not an index";
  if (const std::string marker = StringIn(entry, "marker"); !marker.empty())
    package.why_open = absl::StrCat("a marker (only where ", marker, ")");
  if (package.version.empty() && package.commit.empty() && package.why_open.empty())
    package.why_open = "no version";
  if (!package.commit.empty() || !package.why_open.empty()) package.version.clear();
  return package;
}

absl::Status AddRequirements(const toml::array* list, PinnedVersions& pins) {
  if (list == nullptr) return absl::OkStatus();
  for (const toml::node& node : *list) {
    const std::string text = node.value_or(std::string());
    if (text.empty()) continue;  // {include-group = "..."}: that group is read, too
    VersionPin package{.line = LineOf(node)};
    if (!ReadRequirement(text, package))
      return BadLine(pins.origin, package.line,
                     absl::StrCat("'", text, "' is not a requirement, such as verl==0.9.1"));
    pins.packages.push_back(std::move(package));
  }
  return absl::OkStatus();
}

absl::Status AddGroups(const toml::table* groups, PinnedVersions& pins) {
  if (groups == nullptr) return absl::OkStatus();
  for (const auto& [name, group] : *groups)
    RETURN_IF_ERROR(AddRequirements(group.as_array(), pins));
  return absl::OkStatus();
}

absl::StatusOr<PinnedVersions> OfToml(const std::string& text, const std::string& origin) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return BadLine(origin, static_cast<int>(error.source().begin.line),
                   absl::StrCat("not TOML: ", std::string(error.description())));
  }
  const toml::table& root = parsed.table();
  PinnedVersions pins{.origin = origin};
  for (const char* key : {"package", "packages"}) {  // uv.lock and pylock.toml
    const toml::array* entries = root[key].as_array();
    if (entries == nullptr) continue;
    for (const toml::node& entry : *entries) {
      if (!entry.is_table()) continue;
      VersionPin package = OfLock(*entry.as_table());
      if (package.name.empty()) return BadLine(origin, LineOf(entry), "a package without a name");
      pins.packages.push_back(std::move(package));
    }
    return pins;
  }
  const toml::table* project = root["project"].as_table();
  if (project == nullptr && !root.contains("dependency-groups"))
    return absl::InvalidArgumentError(
        absl::StrCat(origin,
                     ": it names no packages: give a requirements file, uv.lock, pylock.toml, or a "
                     "pyproject.toml with [project]"));
  if (project != nullptr) {
    RETURN_IF_ERROR(AddRequirements((*project)["dependencies"].as_array(), pins));
    RETURN_IF_ERROR(AddGroups((*project)["optional-dependencies"].as_table(), pins));
  }
  RETURN_IF_ERROR(AddGroups(root["dependency-groups"].as_table(), pins));
  return pins;
}

bool AreEqual(const VersionPin& a, const VersionPin& b) {
  return a.version == b.version && a.commit == b.commit && a.is_exact() && b.is_exact();
}

// Leaves one entry for each package; entries that differ make it open.
void JoinEntries(PinnedVersions& pins) {
  std::map<std::string, size_t> places;
  std::vector<VersionPin> joined;
  for (VersionPin& package : pins.packages) {
    const auto [place, is_new] = places.try_emplace(package.name, joined.size());
    if (is_new) {
      joined.push_back(std::move(package));
      continue;
    }
    VersionPin& first = joined[place->second];
    if (AreEqual(first, package)) continue;
    first.version.clear();
    first.commit.clear();
    first.why_open =
        absl::StrCat("several entries (lines ", first.line, " and ", package.line, ")");
  }
  pins.packages = std::move(joined);
}

}  // namespace

const VersionPin* PinnedVersions::Find(absl::string_view name) const {
  const auto it = std::find_if(packages.begin(), packages.end(),
                               [&](const VersionPin& package) { return package.name == name; });
  return it == packages.end() ? nullptr : &*it;
}

absl::StatusOr<PinnedVersions> PinnedVersionsOf(const std::string& text,
                                                const std::string& origin) {
  if (absl::StrContains(text, '\0'))
    return absl::InvalidArgumentError(absl::StrCat(origin, ": it is not a text"));
  const bool is_toml = absl::EndsWith(origin, ".toml") || absl::EndsWith(origin, ".lock");
  absl::StatusOr<PinnedVersions> pins =
      is_toml ? OfToml(text, origin) : OfRequirements(text, origin);
  if (pins.ok()) JoinEntries(*pins);
  return pins;
}

absl::StatusOr<PinnedVersions> ReadPinnedVersions(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return PinnedVersionsOf(text, file.string());
}

}  // namespace bkm
