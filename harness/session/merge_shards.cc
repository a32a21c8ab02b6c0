// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/base/link_tree.h"
#include "harness/base/staging_folder.h"
#include "harness/base/status_macros.h"
#include "harness/runner/judging.h"
#include "harness/runner/run_directory.h"
#include "harness/session/shards.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

struct ReadShard {
  RunDirectory directory;
  RunRecord run;
  ShardRecord shard;
  std::vector<const CellRecord*> subjects;  // in the order of shard.places

  std::string name() const { return directory.root().string(); }
};

absl::StatusOr<ReadShard> Read(const fs::path& folder) {
  ReadShard read{.directory = RunDirectory(fs::absolute(folder))};
  ASSIGN_OR_RETURN(read.run, read.directory.ReadRun());
  const Json& shard = MemberOf(read.run.made_by, "shard");
  if (!shard.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.string(), " is not a shard: bkm run --shard i/n writes one"));
  }
  ASSIGN_OR_RETURN(read.shard, ReadFields<ShardRecord>(shard, read.directory.run_json().string()));
  if (!read.run.finished) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.string(), " is not finished: give its bkm run command again"));
  }
  return read;
}

// Points into `read`, which must not move any more.
absl::Status FindSubjects(ReadShard& read) {
  for (const CellRecord& cell : read.run.cells) {
    if (cell.role == CellRole::kSubject) read.subjects.push_back(&cell);
  }
  if (read.subjects.size() == read.shard.places.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(read.directory.run_json().string(), " has ",
                                          read.subjects.size(), " cells, and its shard has ",
                                          read.shard.places.size()));
}

// What all shards of one run have in common.
absl::Status CheckSame(const ReadShard& first, const ReadShard& other) {
  const auto differ = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        first.name(), " and ", other.name(), " are no shards of one run: they differ in ", what));
  };
  if (first.run.matrix != other.run.matrix) return differ("the matrix");
  if (first.shard.of != other.shard.of) return differ("the number of shards");
  if (first.shard.plan != other.shard.plan || first.shard.cells != other.shard.cells)
    return differ("the plan (other filters, versions or a moved branch)");
  if (first.run.sandbox != other.run.sandbox) return differ("the sandbox level");
  for (const char* key : {"limits", "cell_code"}) {
    if (MemberOf(first.run.made_by, key) != MemberOf(other.run.made_by, key)) {
      return differ(key == std::string("limits") ? "the limits of cells" : "the build of bkm");
    }
  }
  return absl::OkStatus();
}

struct Place {
  const ReadShard* shard = nullptr;
  const CellRecord* cell = nullptr;
};

// The cells in the plan's order: each exactly once.
absl::StatusOr<std::vector<Place>> PlacesOf(const std::vector<ReadShard>& shards) {
  std::vector<Place> places(static_cast<size_t>(shards[0].shard.cells));
  std::set<int> given;
  for (const ReadShard& shard : shards) {
    given.insert(shard.shard.index);
    for (size_t i = 0; i < shard.subjects.size(); ++i) {
      const int64_t at = shard.shard.places[i];
      if (at < 0 || at >= static_cast<int64_t>(places.size())) {
        return absl::DataLossError(
            absl::StrCat(shard.directory.run_json().string(), " has a cell outside of its plan"));
      }
      Place& place = places[static_cast<size_t>(at)];
      if (place.cell) {
        return absl::InvalidArgumentError(absl::StrCat(place.shard->name(), " and ", shard.name(),
                                                       " overlap: both have ", place.cell->id));
      }
      place = {&shard, shard.subjects[i]};
    }
  }
  std::vector<std::string> missing;
  for (int index = 1; index <= shards[0].shard.of; ++index) {
    if (!given.contains(index)) missing.push_back(absl::StrCat(index, "/", shards[0].shard.of));
  }
  std::string ids;
  for (const Place& place : places) {
    if (!place.cell) {
      return absl::InvalidArgumentError(
          absl::StrCat("cells are missing: name the run of shard ", absl::StrJoin(missing, ", ")));
    }
    absl::StrAppend(&ids, place.cell->id, "\n");
  }
  if (Sha256(ids) == shards[0].shard.plan) return places;
  return absl::DataLossError(
      absl::StrCat("the cells of ", shards[0].name(), " and the others are not those of the plan"));
}

// The folder of a cell, as if it had been measured in `out`.
absl::Status TakeCell(const ReadShard& shard, const CellRecord& cell, const RunDirectory& out,
                      const fs::path& final_root) {
  // Equal cells of one shard have one folder.
  std::error_code error;
  if (fs::exists(out.cell(cell), error)) return absl::OkStatus();
  RETURN_IF_ERROR(shard.directory.VerifyCell(cell));
  ASSIGN_OR_RETURN(std::optional<Json> request, shard.directory.ReadRequest(cell));
  RETURN_IF_ERROR(LinkTree(shard.directory.cell(cell), out.cell(cell)));
  if (!request) return absl::OkStatus();
  const RunDirectory final_directory(final_root);
  (*request)["dir"] = final_directory.cell(cell).string();
  RETURN_IF_ERROR(RemoveTree(out.cell(cell) / "request.json"));
  RETURN_IF_ERROR(WriteFile(out.cell(cell) / "request.json", ToText(*request)));
  // It names the shard's folder.
  RETURN_IF_ERROR(RemoveTree(out.cell(cell) / "rerun.sh"));
  const char* launcher = std::getenv("BKM_LAUNCHER");
  RETURN_IF_ERROR(
      final_directory.WriteRerun(cell, launcher ? launcher : "bkm", out.cell(cell) / "rerun.sh"));
  return out.SealCell(cell);
}

absl::StatusOr<RunRecord> MergeInto(const std::vector<ReadShard>& shards,
                                    const std::vector<Place>& places, const RunDirectory& out,
                                    const fs::path& final_root) {
  const RunRecord& first = shards[0].run;
  RunRecord run{.matrix = first.matrix, .finished = true, .sandbox = first.sandbox};
  std::set<std::string> ids;
  for (const Place& place : places) {
    ids.insert(place.cell->id);
    run.cells.push_back(*place.cell);
    RETURN_IF_ERROR(TakeCell(*place.shard, *place.cell, out, final_root));
  }
  for (const ReadShard& shard : shards) {
    // Two shards may have added the same control.
    for (const CellRecord& cell : shard.run.cells) {
      if (!ids.insert(cell.id).second) continue;
      run.cells.push_back(cell);
      RETURN_IF_ERROR(TakeCell(shard, cell, out, final_root));
    }
    for (const char* folder : {"locks", "probes", "references"})
      RETURN_IF_ERROR(LinkTree(shard.directory.root() / folder, out.root() / folder));
  }
  double wall_s = 0, preload_s = 0;
  for (const ReadShard& shard : shards) {
    wall_s += FiniteOf(shard.run.made_by, "wall_s").value_or(0);
    preload_s += FiniteOf(shard.run.made_by, "preload_s").value_or(0);
  }
  run.made_by = {{"merged", shards.size()},
                 {"cell_code", MemberOf(first.made_by, "cell_code")},
                 {"limits", MemberOf(first.made_by, "limits")},
                 {"wall_s", wall_s},
                 {"preload_s", preload_s},
                 {"whole", shards[0].shard.whole}};
  RETURN_IF_ERROR(RunJudge(out).JudgeRun(run));
  return run;
}

}  // namespace

absl::StatusOr<RunRecord> MergeShards(const std::vector<fs::path>& folders, const fs::path& out) {
  std::vector<ReadShard> shards;
  for (const fs::path& folder : folders) {
    ASSIGN_OR_RETURN(ReadShard read, Read(folder));
    shards.push_back(std::move(read));
  }
  for (ReadShard& shard : shards) {
    RETURN_IF_ERROR(CheckSame(shards[0], shard));
    RETURN_IF_ERROR(FindSubjects(shard));
  }
  ASSIGN_OR_RETURN(const std::vector<Place> places, PlacesOf(shards));
  const fs::path target = fs::absolute(out).lexically_normal();
  const auto record = [](const fs::path& root) { return ReadFile(RunDirectory(root).run_json()); };
  std::error_code error;
  const bool is_taken = fs::exists(target, error) && !fs::is_empty(target, error);
  const absl::StatusOr<std::string> there = record(target);
  const absl::Status taken = absl::InvalidArgumentError(
      absl::StrCat(out.string(), " is there already: name another folder with --out"));
  if (is_taken && !there.ok()) return taken;
  ASSIGN_OR_RETURN(const StagingFolder staging,
                   StagingFolder::Create(target.parent_path(), "merge"));
  const fs::path& made = staging.path();
  ASSIGN_OR_RETURN(RunRecord run, MergeInto(shards, places, RunDirectory(made), target));
  if (is_taken) {
    // The merge of a process that was killed when all was done?
    const absl::StatusOr<std::string> here = record(made);
    if (here.ok() && *there == *here) return run;
    return taken;
  }
  RETURN_IF_ERROR(SyncTree(made));
  if (::rename(made.c_str(), target.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", out.string(), ": ", std::strerror(errno)));
  }
  return run;
}

}  // namespace bkm
