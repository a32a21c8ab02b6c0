// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/run_directory.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"
#include "harness/model/observation.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Quotes `text` as one word of a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Of a cell's folder, into which a subject may have written.
constexpr int64_t kLargestFile = 128 << 20;

absl::StatusOr<std::optional<Json>> ReadOptionalObject(const fs::path& path) {
  const absl::StatusOr<std::string> text =
      FolderReader(path.parent_path()).Read(path.filename().string(), kLargestFile);
  if (absl::IsNotFound(text.status())) return std::optional<Json>();
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<Json> json = ParseJson(*text, path.string());
  RETURN_IF_ERROR(json.status());
  if (!json->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": an object is needed here, not ", json->type_name()));
  }
  return std::optional<Json>(*std::move(json));
}

// What the manifest of a cell covers: all that judging and explaining read.
const std::vector<std::string>& Evidence() {
  static const auto& kEvidence = *new std::vector<std::string>{
      "request.json", "observation.json", "observed.json", "stdout", "stderr", "tensors"};
  return kEvidence;
}

// What cells write may hold links, which nothing follows. A run may hold runs of its own, and
// another process may work in it: what is gone meanwhile has no links.
absl::Status CheckLinksBelow(const fs::path& root, const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path(), name = path.filename();
    std::error_code gone;
    if (it->is_symlink(gone)) {
      const fs::path target = fs::canonical(path, gone);
      if (!gone && IsAtOrBelow(target, root)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path.string(), " is a link that leads out of the run ", root.string(),
          ": bkm reads and writes in its run only; put what it leads to in its place"));
    }
    const bool is_of_cell =
        folder.filename() == "replay" || folder.parent_path().filename() == "cells";
    const bool is_written_by_it = is_of_cell && (name == "work" || name == "tensors");
    if (it->is_directory(gone) && !is_written_by_it) RETURN_IF_ERROR(CheckLinksBelow(root, path));
  }
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot list ", folder.string(), ": ", error.message()));
}

}  // namespace

absl::StatusOr<FileLock> RunDirectory::Lock() const {
  return FileLock::AcquireAlone(root_ / ".lock", absl::StrCat("the run in ", root_.string()));
}

absl::Status RunDirectory::PrepareCell(const CellRecord& record, const Json& request,
                                       const std::string& launcher) const {
  const fs::path dir = cell(record);
  RETURN_IF_ERROR(RemoveTree(dir));
  RETURN_IF_ERROR(CreateDirectories(dir / "tensors"));
  RETURN_IF_ERROR(CreateDirectories(dir / "work"));
  // WriteObservation syncs the request with the evidence.
  RETURN_IF_ERROR(WriteScratchFile(dir / "request.json", ToText(request)));
  return WriteRerun(record, launcher, dir / "rerun.sh");
}

absl::Status RunDirectory::WriteRerun(const CellRecord& record, const std::string& launcher,
                                      const fs::path& script) const {
  RETURN_IF_ERROR(WriteScratchFile(
      script,
      absl::StrCat("#!/bin/sh\n# Runs this cell again in a fresh process and judges it.\nexec ",
                   ShellQuoted(launcher), " replay ", ShellQuoted(root_.string()), " ",
                   ShellQuoted(record.id), " \"$@\"\n")));
  std::error_code error;
  fs::permissions(script, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, error);
  return absl::OkStatus();
}

absl::Status RunDirectory::AdoptCell(const CellRecord& record, const fs::path& folder) const {
  const fs::path dir = cell(record);
  const char* const kObservation = "observation.json";
  ASSIGN_OR_RETURN(const std::string observation, ReadFile(folder / kObservation));
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    if (name != kObservation) RETURN_IF_ERROR(LinkTree(entry.path(), dir / name));
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot list ", folder.string(), ": ", error.message()));
  // Last, as in WriteObservation: a full disk may cut off a file that had to be copied.
  RETURN_IF_ERROR(WriteManifest(dir, Evidence(), {{kObservation, observation}}));
  RETURN_IF_ERROR(LinkFile(folder / kObservation, dir / kObservation));
  return SyncFoldersAbove(dir);
}

absl::Status RunDirectory::WriteObservation(const CellRecord& record,
                                            const CellFacts& facts) const {
  const fs::path dir = cell(record);
  const std::string text = ToText(facts.json());
  // The observation comes last: an observation without checksums is one of an older version.
  RETURN_IF_ERROR(CreateDirectories(dir));
  RETURN_IF_ERROR(RemoveTree(dir / "observation.json"));
  RETURN_IF_ERROR(WriteManifest(dir, Evidence(), {{"observation.json", text}}));
  RETURN_IF_ERROR(WriteFile(dir / "observation.json", text));
  return SyncFoldersAbove(dir);
}

absl::Status RunDirectory::SealCell(const CellRecord& record) const {
  RETURN_IF_ERROR(WriteManifest(cell(record), Evidence()));
  return SyncFoldersAbove(cell(record));
}

absl::Status RunDirectory::SyncFoldersAbove(const fs::path& dir) const {
  for (fs::path folder = dir.parent_path();; folder = folder.parent_path()) {
    RETURN_IF_ERROR(SyncFolder(folder));
    if (folder == root_.parent_path() || folder == folder.root_path()) return absl::OkStatus();
  }
}

absl::Status RunDirectory::VerifyCell(const CellRecord& record) const {
  const fs::path dir = cell(record);
  const absl::Status verified = VerifyManifest(dir);
  if (!absl::IsNotFound(verified)) return verified;
  ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, ReadObservation(record));
  if (!facts) return absl::OkStatus();
  for (const ObservedStep& step : facts->seen().steps) {
    std::error_code error;
    if (!step.tensors.empty() && !fs::exists(dir / step.tensors, error))
      return absl::DataLossError(absl::StrCat((dir / step.tensors).string(), " is missing"));
  }
  return absl::OkStatus();
}

absl::StatusOr<fs::path> RunDirectory::SetCellAside(const CellRecord& record) const {
  return SetAside(cell(record));
}

absl::StatusOr<std::optional<CellFacts>> RunDirectory::ReadObservation(
    const CellRecord& record) const {
  const fs::path path = cell(record) / "observation.json";
  ASSIGN_OR_RETURN(std::optional<Json> json, ReadOptionalObject(path));
  if (!json) return std::optional<CellFacts>();
  ASSIGN_OR_RETURN(CellFacts facts, CellFacts::FromJson(*std::move(json), path.string()));
  return std::optional<CellFacts>(std::move(facts));
}

absl::StatusOr<std::optional<Json>> RunDirectory::ReadRequest(const CellRecord& record) const {
  return ReadOptionalObject(cell(record) / "request.json");
}

absl::Status RunDirectory::WriteVerdict(const CellRecord& record) const {
  if (!record.verdict) return absl::OkStatus();
  const fs::path path = cell(record) / "verdict.json";
  const std::string text = ToText(ToJson(*record.verdict));
  // A run judges its cells several times, and each write waits for the disk.
  const absl::StatusOr<std::string> before = ReadFile(path);
  return before.ok() && *before == text ? absl::OkStatus() : WriteFile(path, text);
}

absl::StatusOr<std::optional<Verdict>> RunDirectory::ReadVerdict(const CellRecord& record) const {
  const fs::path path = cell(record) / "verdict.json";
  ASSIGN_OR_RETURN(const std::optional<Json> json, ReadOptionalObject(path));
  if (!json) return std::optional<Verdict>();
  ASSIGN_OR_RETURN(Verdict verdict, VerdictFromJson(*json, path.string()));
  return std::optional<Verdict>(std::move(verdict));
}

absl::Status RunDirectory::WriteLock(const RuntimeLock& lock) const {
  const fs::path path = this->lock(lock.Key());
  if (ReadLock(lock.Key()).ok()) return absl::OkStatus();
  std::error_code error;
  if (fs::exists(path, error)) RETURN_IF_ERROR(SetAside(path).status());
  return WriteFile(path, ToText(ToJson(lock)));
}

absl::StatusOr<RuntimeLock> RunDirectory::ReadLock(const std::string& key) const {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(lock(key)));
  ASSIGN_OR_RETURN(RuntimeLock read, RuntimeLockFromJson(json, lock(key).string()));
  // The key is a hash of the content.
  if (read.Key() == key) return read;
  return absl::DataLossError(
      absl::StrCat(lock(key).string(), " is damaged: the same bkm run writes it again"));
}

absl::Status RunDirectory::WriteRun(const RunRecord& run) const {
  return WriteFile(run_json(), ToText(ToJson(run)));
}

absl::StatusOr<RunRecord> RunDirectory::ReadRun() const {
  absl::StatusOr<Json> json = ReadJsonFile(run_json());
  if (absl::IsNotFound(json.status())) {
    return absl::NotFoundError(
        absl::StrCat(root_.string(), " is not a run directory: it has no run.json"));
  }
  RETURN_IF_ERROR(json.status());
  ASSIGN_OR_RETURN(RunRecord run, RunRecordFromJson(*json, run_json().string()));
  for (const CellRecord& record : run.cells) RETURN_IF_ERROR(CheckFolder(record));
  RETURN_IF_ERROR(CheckLinks());
  return run;
}

absl::Status RunDirectory::CheckLinks() const {
  std::error_code error;
  const fs::path root = fs::canonical(root_, error);
  return error ? absl::OkStatus() : CheckLinksBelow(root, root);
}

absl::Status RunDirectory::CheckFolder(const CellRecord& record) const {
  const fs::path dir = record.dir, name = dir.filename();
  std::string why;
  if (record.dir != absl::StrCat("cells/", name.string()) || name.empty() || name == "." ||
      name == "..")
    why = "is not below cells";
  for (const fs::path& part : {dir.parent_path(), dir}) {
    std::error_code error;
    if (why.empty() && fs::is_symlink(root_ / part, error)) why = "is a link";
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(run_json().string(), ": the folder ", record.dir,
                                                 " of the cell ", record.id, " ", why,
                                                 ": bkm reads and writes in its run only"));
}

}  // namespace bkm
