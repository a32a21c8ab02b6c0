// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_SITE_RUN_H_
#define HARNESS_SITE_SITE_RUN_H_

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// A finished run that the site shows, and where its pages are.
class SiteRun {
 public:
  // The error says what is wrong with the folder: no run.json, of another schema, not finished.
  // `taken`: names that the folder of its pages must not have.
  static absl::StatusOr<std::unique_ptr<SiteRun>> Read(const std::filesystem::path& folder,
                                                       const std::set<std::string>& taken);

  const RunRecord& record() const { return record_; }
  const RunDirectory& directory() const { return directory_; }
  const std::string& slug() const { return slug_; }
  // "runs/SLUG/".
  std::string folder() const { return "runs/" + slug_ + "/"; }
  std::string index() const { return folder() + "index.html"; }
  // The cell's page and, beside it, its raw files: page "x.html", "x.observation.json", ...
  std::string PageOf(const CellRecord& cell) const { return StemOf(cell) + ".html"; }
  std::string StemOf(const CellRecord& cell) const;
  // By the folder that run.json names ("cells/..."); null: none of this run.
  const CellRecord* CellAt(const std::string& dir) const;
  const CellRecord* CellOfId(const std::string& id) const;

 private:
  explicit SiteRun(const std::filesystem::path& folder) : directory_(folder) {}

  RunDirectory directory_;
  std::string slug_;
  RunRecord record_;
  std::map<std::string, const CellRecord*> by_dir_;
  std::map<std::string, const CellRecord*> by_id_;
};

// The runs of a site, by the folders that a table names.
class SiteRuns {
 public:
  absl::Status Add(const std::filesystem::path& folder);

  const std::vector<std::unique_ptr<SiteRun>>& all() const { return runs_; }
  // The page of the cell `dir` of the run in `folder`; empty when the site does not show it.
  std::string PageOf(const std::filesystem::path& folder, const std::string& dir) const;
  // The page of a cell by its id, whichever run has it.
  std::string PageOfId(const std::string& id) const;

 private:
  std::vector<std::unique_ptr<SiteRun>> runs_;
  std::map<std::string, const SiteRun*> by_folder_;  // canonical
};

}  // namespace bkm

#endif  // HARNESS_SITE_SITE_RUN_H_
