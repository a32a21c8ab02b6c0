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
  // An error if run.json is missing, has another schema, or says that the run is not finished.
  // `taken`: slugs of other runs.
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
  // The cell with this folder of run.json ("cells/..."), or with this id; null: not of this run.
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

// The runs of a site.
class SiteRuns {
 public:
  absl::Status Add(const std::filesystem::path& folder);

  const std::vector<std::unique_ptr<SiteRun>>& all() const { return runs_; }
  // The page of the cell `dir` of the run in `folder`; empty if the site does not show it.
  std::string PageOf(const std::filesystem::path& folder, const std::string& dir) const;
  // The page of the cell with this id, in any run; empty if there is none.
  std::string PageOfId(const std::string& id) const;

 private:
  std::vector<std::unique_ptr<SiteRun>> runs_;
  std::map<std::string, const SiteRun*> by_folder_;  // canonical
};

}  // namespace bkm

#endif  // HARNESS_SITE_SITE_RUN_H_
