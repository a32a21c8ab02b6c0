// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/run_directory.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Quotes `text` as one word of a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

absl::StatusOr<std::optional<Json>> ReadOptionalObject(const fs::path& path) {
  absl::StatusOr<Json> json = ReadJsonFile(path);
  if (absl::IsNotFound(json.status())) return std::optional<Json>();
  RETURN_IF_ERROR(json.status());
  if (!json->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": an object is needed here, not ", json->type_name()));
  }
  return std::optional<Json>(*std::move(json));
}

}  // namespace

absl::Status RunDirectory::PrepareCell(const CellRecord& record, const Json& request,
                                       const std::string& launcher) const {
  const fs::path dir = cell(record);
  RETURN_IF_ERROR(RemoveTree(dir));
  RETURN_IF_ERROR(CreateDirectories(dir / "tensors"));
  RETURN_IF_ERROR(CreateDirectories(dir / "work"));
  RETURN_IF_ERROR(WriteFile(dir / "request.json", ToText(request)));
  const fs::path script = dir / "rerun.sh";
  RETURN_IF_ERROR(WriteFile(
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
  return LinkTree(folder, cell(record));
}

absl::Status RunDirectory::WriteObservation(const CellRecord& record,
                                            const Json& observation) const {
  return WriteFile(cell(record) / "observation.json", ToText(observation));
}

absl::StatusOr<std::optional<Json>> RunDirectory::ReadObservation(const CellRecord& record) const {
  return ReadOptionalObject(cell(record) / "observation.json");
}

absl::StatusOr<std::optional<Json>> RunDirectory::ReadRequest(const CellRecord& record) const {
  return ReadOptionalObject(cell(record) / "request.json");
}

absl::Status RunDirectory::WriteVerdict(const CellRecord& record) const {
  if (!record.verdict) return absl::OkStatus();
  return WriteFile(cell(record) / "verdict.json", ToText(ToJson(*record.verdict)));
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
  std::error_code error;
  return fs::exists(path, error) ? absl::OkStatus() : WriteFile(path, ToText(ToJson(lock)));
}

absl::StatusOr<RuntimeLock> RunDirectory::ReadLock(const std::string& key) const {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(lock(key)));
  return RuntimeLockFromJson(json, lock(key).string());
}

absl::Status RunDirectory::WriteRun(const RunRecord& run) const {
  return WriteFile(run_json(), ToText(ToJson(run)));
}

absl::StatusOr<RunRecord> RunDirectory::ReadRun() const {
  absl::StatusOr<Json> json = ReadJsonFile(run_json());
  if (absl::IsNotFound(json.status())) {
    return absl::NotFoundError(
        absl::StrCat(root_.string(), " is no run directory: it has no run.json"));
  }
  RETURN_IF_ERROR(json.status());
  return RunRecordFromJson(*json, run_json().string());
}

}  // namespace bkm
