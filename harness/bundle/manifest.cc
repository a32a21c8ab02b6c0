// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/manifest.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/part_file.h"
#include "harness/source/tree_listing.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace {

constexpr size_t kMostCells = 100'000;
constexpr size_t kMostFiles = 30'000;  // of a cell: more than the sandbox allows

absl::Status Bad(const std::string& origin, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", what));
}

// Whether all characters are letters, digits, or one of `others`.
bool HasOnly(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != others.npos;
  });
}

// A word of a requirements file or of a command line: no option, no space, no path.
bool IsWord(absl::string_view text) {
  return !text.empty() && text.size() <= 200 && HasOnly(text, "._+!-") && text[0] != '-' &&
         text[0] != '.';
}

// A name of one folder or file, nowhere else.
absl::Status CheckOneName(absl::string_view name) {
  RETURN_IF_ERROR(CheckName(name));
  return CheckWrittenName(name);
}

absl::Status CheckSubject(const std::string& origin, const std::optional<PackedSubject>& subject) {
  if (!subject) return absl::OkStatus();
  if (subject->tree.empty() ? subject->listed : !IsPartName(subject->tree))
    return Bad(origin, absl::StrCat("the tree ", subject->tree, " is not a part"));
  if (!subject->home.empty()) {
    const std::vector<std::string> names = absl::StrSplit(subject->home, '/');
    const bool sound =
        names.size() <= 3 && std::all_of(names.begin(), names.end(),
                                         [](const auto& name) { return CheckOneName(name).ok(); });
    if (!sound) return Bad(origin, absl::StrCat("the tree cannot lie at ", subject->home));
  }
  // The package is compiled as a folder of the tree.
  if (!HasOnly(subject->package, "_") || subject->package.empty())
    return Bad(origin, absl::StrCat("the package ", subject->package, " has no such name"));
  return absl::OkStatus();
}

absl::Status CheckCell(const std::string& origin, const BundleManifest& manifest,
                       const PackedCell& cell) {
  constexpr absl::string_view kCells = "cells/";
  const CellRecord& record = cell.record;
  const std::string place = absl::StrCat(origin, ": the cell ", record.id);
  if (record.id != CellId(record.cell)) return Bad(place, "has another id than its fields give");
  if (!absl::StartsWith(record.dir, kCells) ||
      !CheckOneName(absl::string_view(record.dir).substr(kCells.size())).ok())
    return Bad(place, "has no folder of a cell");
  if (record.verdict) return Bad(place, "has a verdict before it ran");
  if (!cell.stopped.is_null() && !CellFacts::FromJson(cell.stopped, place).ok())
    return Bad(place, "is stopped without an observation");
  if (cell.stopped.is_null() && !manifest.locks.contains(record.lock))
    return Bad(place, "has a lock that is not packed");
  if (!cell.probe.empty() && !manifest.probes.contains(cell.probe))
    return Bad(place, "has a probe that is not packed");
  RETURN_IF_ERROR(CheckSubject(place, cell.engine));
  return CheckSubject(place, cell.library);
}

}  // namespace

void Describe(Fields& fields, PackedFile& file) {
  fields.Field("path", file.path);
  fields.Field("id", file.id);
  fields.Field("part", file.part, Presence::kOmitted);
}

void Describe(Fields& fields, PackedTree& tree) { fields.Field("files", tree.files); }

void Describe(Fields& fields, PackedSubject& subject) {
  fields.Field("package", subject.package);
  fields.Field("content", subject.content);
  fields.Field("tree", subject.tree, Presence::kOmitted);
  fields.Field("home", subject.home, Presence::kOmitted);
  fields.Field("listed", subject.listed);
}

void Describe(Fields& fields, PackedCell& cell) {
  fields.Field("record", cell.record);
  fields.Field("engine", cell.engine, Presence::kOmitted);
  fields.Field("library", cell.library, Presence::kOmitted);
  fields.Field("probe", cell.probe, Presence::kOmitted);
  fields.Field("stopped", cell.stopped, Presence::kOmitted);
}

void Describe(Fields& fields, BundleManifest& manifest) {
  fields.Field("bkm", manifest.bkm);
  fields.Field("matrix", manifest.matrix);
  fields.Field("cell_code", manifest.cell_code);
  fields.Field("limits", manifest.limits);
  fields.Field("locks", manifest.locks);
  fields.Field("probes", manifest.probes);
  fields.Field("cells", manifest.cells);
}

void Describe(Fields& fields, ResultFile& file) {
  fields.Field("path", file.path);
  fields.Field("part", file.part);
}

void Describe(Fields& fields, CellResult& result) {
  fields.Field("cell", result.cell);
  fields.Field("control", result.control, Presence::kOmitted);
  fields.Field("lock", result.lock, Presence::kOmitted);
  fields.Field("machine", result.machine);
  fields.Field("files", result.files);
}

void Describe(Fields& fields, SkippedCell& cell) {
  fields.Field("cell", cell.cell);
  fields.Field("why", cell.why);
}

void Describe(Fields& fields, SkippedCells& cells) { fields.Field("cells", cells.cells); }

std::vector<std::string> SkippedTexts(const SkippedCells& cells) {
  std::vector<SkippedCell> firsts;  // of each reason
  std::map<std::string, int> counts;
  for (const SkippedCell& cell : cells.cells)
    if (counts[cell.why]++ == 0) firsts.push_back(cell);
  std::vector<std::string> texts;
  texts.reserve(firsts.size());
  for (const SkippedCell& first : firsts) {
    const int others = counts[first.why] - 1;
    const std::string and_others =
        others == 0 ? ""
                    : absl::StrCat(" and ", others, others == 1 ? " other cell" : " other cells");
    texts.push_back(absl::StrCat("cannot run ", first.cell, and_others, ": ", first.why));
  }
  return texts;
}

absl::StatusOr<Json> ParseDocument(absl::string_view text, const std::string& origin) {
  ASSIGN_OR_RETURN(Json json, ParseJson(text, origin));
  if (!json.is_object()) return Bad(origin, "an object is needed here");
  if (const std::optional<int64_t> schema = WholeOf(json, "schema"); schema != 1) {
    return Bad(origin, absl::StrCat("this bkm knows schema 1 only, not ",
                                    schema ? absl::StrCat(*schema) : "a file without one",
                                    ": use the bkm that wrote the file, or a newer one"));
  }
  json.erase("schema");
  return json;
}

absl::StatusOr<BundleManifest> ReadManifest(absl::string_view text, const std::string& origin) {
  ASSIGN_OR_RETURN(BundleManifest manifest, ReadDocument<BundleManifest>(text, origin));
  if (manifest.cells.size() > kMostCells)
    return Bad(origin, absl::StrCat("more than ", kMostCells, " cells"));
  for (const auto& [key, part] : manifest.locks) {
    if (!IsPartName(key) || !IsPartName(part)) return Bad(origin, "a lock has no proper name");
  }
  for (const auto& [folder, part] : manifest.probes) {
    if (folder.size() != 32 || !HasOnly(folder, "") || !IsPartName(part))
      return Bad(origin, "a probe has no proper name");
  }
  std::set<std::string> ids, folders;
  for (const PackedCell& cell : manifest.cells) {
    RETURN_IF_ERROR(CheckCell(origin, manifest, cell));
    if (!ids.insert(cell.record.id).second || !folders.insert(cell.record.dir).second)
      return Bad(origin, absl::StrCat("the cell ", cell.record.id, " occurs twice"));
  }
  return manifest;
}

absl::Status CheckAsBundle(const BundleManifest& manifest, const std::string& origin) {
  for (const PackedCell& cell : manifest.cells) {
    if (cell.record.role != CellRole::kSubject)
      return Bad(origin, absl::StrCat("the cell ", cell.record.id, " is not one that is packed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PackedTree> ReadPackedTree(absl::string_view text, const std::string& origin) {
  ASSIGN_OR_RETURN(PackedTree tree, ReadDocument<PackedTree>(text, origin));
  TreeMeter meter{TreeBounds()};
  std::set<std::string> leaves, folders;
  for (const PackedFile& file : tree.files) {
    absl::string_view path = file.path;
    const bool is_folder = absl::EndsWith(path, "/");
    if (is_folder) path.remove_suffix(1);
    if (is_folder ? !file.part.empty() : !IsPartName(file.part))
      return Bad(origin, absl::StrCat(file.path, " has no part"));
    if (!HasOnly(file.id, "*@")) return Bad(origin, absl::StrCat(file.path, " has no proper id"));
    absl::Status status = meter.CountEntry();
    status.Update(CheckPath(path, TreeBounds()));
    if (!status.ok()) return Bad(origin, status.message());
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      if (absl::Status name = CheckOneName(path.substr(begin, end - begin)); !name.ok())
        return Bad(origin, name.message());
      if (end < path.size()) folders.insert(std::string(path.substr(0, end)));
      begin = end + 1;
    }
    if (!(is_folder ? folders : leaves).insert(std::string(path)).second && !is_folder)
      return Bad(origin, absl::StrCat(file.path, " occurs twice"));
  }
  for (const std::string& leaf : leaves) {
    if (folders.contains(leaf)) return Bad(origin, absl::StrCat(leaf, " is a file and a folder"));
  }
  return tree;
}

bool IsEvidenceName(absl::string_view name) { return CheckOneName(name).ok(); }

absl::StatusOr<CellResult> ReadCellResult(absl::string_view text, const std::string& origin) {
  ASSIGN_OR_RETURN(CellResult result, ReadDocument<CellResult>(text, origin));
  if (result.files.size() > kMostFiles) return Bad(origin, "too many files");
  if (!IsPartName(result.machine) || (!result.lock.empty() && !IsPartName(result.lock)))
    return Bad(origin, "the machine or the lock is not a part");
  static const std::set<std::string>& kAlone =
      *new std::set<std::string>{"observation.json", "observed.json", "stdout", "stderr"};
  std::set<std::string> paths;
  for (const ResultFile& file : result.files) {
    constexpr absl::string_view kTensors = "tensors/";
    const bool is_tensor = absl::StartsWith(file.path, kTensors) &&
                           IsEvidenceName(absl::string_view(file.path).substr(kTensors.size()));
    if (!is_tensor && !kAlone.contains(file.path))
      return Bad(origin, absl::StrCat("a cell's folder has no file ", file.path));
    if (!IsPartName(file.part)) return Bad(origin, absl::StrCat(file.path, " has no part"));
    if (!paths.insert(file.path).second)
      return Bad(origin, absl::StrCat(file.path, " occurs twice"));
  }
  return result;
}

absl::StatusOr<RuntimeLock> ReadPackedLock(absl::string_view text, const std::string& origin) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, origin));
  ASSIGN_OR_RETURN(RuntimeLock lock, RuntimeLockFromJson(json, origin));
  const auto check = [&](const std::string& word) {
    return IsWord(word) ? absl::OkStatus()
                        : Bad(origin, absl::StrCat("'", word.substr(0, 100),
                                                   "' is not a name, version or hash"));
  };
  RETURN_IF_ERROR(check(lock.python));
  if (lock.policy == "existing") return lock;  // nothing is installed by it
  for (const std::string& package : lock.exempt) RETURN_IF_ERROR(check(package));
  if (!lock.torch_backend.empty()) RETURN_IF_ERROR(check(lock.torch_backend));
  if (!HasOnly(lock.cutoff, ":.+-") || absl::StartsWith(lock.cutoff, "-"))
    return Bad(origin, "the cutoff is not a time");
  for (const LockedPackage& package : lock.packages) {
    RETURN_IF_ERROR(check(package.name));
    RETURN_IF_ERROR(check(package.version));
    for (const std::string& sha256 : package.sha256) {
      if (!IsPartName(sha256)) return Bad(origin, absl::StrCat(package.name, " has no SHA-256"));
    }
  }
  return lock;
}

}  // namespace bkm
