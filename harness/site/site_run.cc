// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/site_run.h"

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/site/page.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::string Canonical(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(folder, error);
  return error ? folder.string() : path.string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SiteRun>> SiteRun::Read(const fs::path& folder,
                                                       const std::set<std::string>& taken) {
  std::unique_ptr<SiteRun> run(new SiteRun(folder));
  ASSIGN_OR_RETURN(run->record_, run->directory_.ReadRun());
  if (!run->record_.finished) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.string(), ": this run is not finished; repeat its command (bkm run ... --out ",
        folder.string(), ") to finish it"));
  }
  const std::string name = PathPart(run->record_.matrix);
  run->slug_ = name;
  for (int number = 2; taken.contains(run->slug_); ++number)
    run->slug_ = absl::StrCat(name, "-", number);
  for (const CellRecord& cell : run->record_.cells) {
    run->by_dir_[cell.dir] = &cell;
    run->by_id_[cell.id] = &cell;
  }
  return run;
}

std::string SiteRun::StemOf(const CellRecord& cell) const {
  return folder() + PathPart(fs::path(cell.dir).filename().string());
}

const CellRecord* SiteRun::CellAt(const std::string& dir) const {
  const auto it = by_dir_.find(dir);
  return it == by_dir_.end() ? nullptr : it->second;
}

const CellRecord* SiteRun::CellOfId(const std::string& id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

absl::Status SiteRuns::Add(const fs::path& folder) {
  const std::string canonical = Canonical(folder);
  if (by_folder_.contains(canonical)) return absl::OkStatus();
  std::set<std::string> taken;
  for (const auto& other : runs_) taken.insert(other->slug());
  ASSIGN_OR_RETURN(std::unique_ptr<SiteRun> run, SiteRun::Read(folder, taken));
  by_folder_[canonical] = run.get();
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

std::string SiteRuns::PageOf(const fs::path& folder, const std::string& dir) const {
  const auto run = by_folder_.find(Canonical(folder));
  if (run == by_folder_.end()) return "";
  const CellRecord* cell = run->second->CellAt(dir);
  return cell ? run->second->PageOf(*cell) : "";
}

std::string SiteRuns::PageOfId(const std::string& id) const {
  for (const auto& run : runs_) {
    if (const CellRecord* cell = run->CellOfId(id)) return run->PageOf(*cell);
  }
  return "";
}

}  // namespace bkm
