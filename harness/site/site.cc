// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/site.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/staging_folder.h"
#include "harness/base/status_macros.h"
#include "harness/site/about_page.h"
#include "harness/site/assets.h"
#include "harness/site/cell_page.h"
#include "harness/site/run_page.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Marks a folder as a site that this program wrote and may replace.
constexpr char kMark[] = ".bkm-site";

class Writer {
 public:
  Writer(fs::path folder, SiteFrame frame) : folder_(std::move(folder)), frame_(std::move(frame)) {}

  absl::Status Write(const Page& page) {
    ++report_.pages;
    return Write(page.path, WholePage(page, frame_));
  }
  absl::Status Write(const std::string& path, const std::string& text) {
    report_.bytes += static_cast<int64_t>(text.size());
    return WriteScratchFile(folder_ / path, text);
  }

  absl::Status WriteRun(const SiteRuns& runs, const SiteRun& run) {
    RETURN_IF_ERROR(Write(RunPage(run)));
    EvidenceReader reader(run);
    for (const CellRecord& cell : run.record().cells) {
      const CellEvidence evidence = reader.Read(cell);
      RETURN_IF_ERROR(Write(CellPage(runs, run, cell, evidence)));
      const std::string stem = run.StemOf(cell);
      RETURN_IF_ERROR(Write(stem + ".verdict.json", ToText(ToJson(evidence.verdict))));
      if (!evidence.raw.is_null())
        RETURN_IF_ERROR(Write(stem + ".observation.json", ToText(evidence.raw)));
      ++report_.cells;
    }
    return absl::OkStatus();
  }

  const SiteReport& report() const { return report_; }

 private:
  fs::path folder_;
  SiteFrame frame_;
  SiteReport report_;
};

bool HasChecks(const SiteContent& content) {
  return !content.detections.empty() || !content.mutated.empty();
}

SiteFrame FrameOf(const SiteContent& content) {
  SiteFrame frame;
  frame.navigation.push_back({"index.html", "Answer"});
  if (!content.history.empty()) frame.navigation.push_back({"history.html", "Which commit"});
  if (content.map) frame.navigation.push_back({"map.html", "Map"});
  if (HasChecks(content)) frame.navigation.push_back({"detection.html", "Checks"});
  for (const auto& run : content.runs.all())
    frame.navigation.push_back({run->index(), "Run " + run->record().matrix});
  frame.navigation.push_back({"about.html", "How it is judged"});
  size_t cells = 0;
  for (const auto& run : content.runs.all()) cells += run->record().cells.size();
  const size_t runs = content.runs.all().size();
  frame.made = absl::StrCat("Made by bkm on ", content.table.today, " from ", runs,
                            runs == 1 ? " run" : " runs", " of ", cells,
                            " cells. These pages are generated.");
  return frame;
}

// Refuses to replace a folder that is not a site.
absl::Status CheckReplaceable(const fs::path& out) {
  std::error_code error;
  if (!fs::exists(out, error) || fs::exists(out / kMark, error)) return absl::OkStatus();
  if (!fs::is_directory(out, error))
    return absl::InvalidArgumentError(absl::StrCat(out.string(), ": is a file; name a new folder"));
  if (fs::is_empty(out, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      out.string(), ": holds files that are not a bkm site; name a new or an empty folder"));
}

// Replaces the old site only now that the new one is complete.
absl::Status MoveInto(const fs::path& made, const fs::path& out) {
  RETURN_IF_ERROR(SyncTree(made));
  std::error_code error;
  const unsigned exchange = fs::exists(out, error) ? RENAME_EXCHANGE : 0;
  int failure =
      ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, out.c_str(), exchange) == 0 ? 0 : errno;
  if (failure == EINVAL && exchange) {
    // This file system cannot exchange: for a moment there is no site.
    RETURN_IF_ERROR(RemoveTree(out));
    failure = ::rename(made.c_str(), out.c_str()) == 0 ? 0 : errno;
  }
  if (failure == 0) return SyncFolder(made.parent_path());
  return absl::InternalError(absl::StrCat("cannot move ", made.string(), " to ", out.string(), ": ",
                                          std::strerror(failure)));
}

absl::Status WritePages(const SiteContent& content, Writer& writer) {
  RETURN_IF_ERROR(writer.Write(kMark, "bkm site replaces this folder.\n"));
  RETURN_IF_ERROR(writer.Write("site.css", kSiteStyle));
  RETURN_IF_ERROR(writer.Write("site.js", kSiteScript));
  RETURN_IF_ERROR(writer.Write("icon.svg", kSiteIcon));
  RETURN_IF_ERROR(writer.Write(FrontPage(content.table, content.runs, content.mutated)));
  RETURN_IF_ERROR(writer.Write(AboutPage()));
  RETURN_IF_ERROR(writer.Write("table.json", ToText(ToJson(content.table.table))));
  for (const PublishedRow& row : content.table.table.rows) {
    if (row.pylock.empty()) continue;
    ASSIGN_OR_RETURN(const std::string lock, ReadFile(content.table.folder / row.pylock));
    RETURN_IF_ERROR(writer.Write(row.pylock, lock));
  }
  if (!content.history.empty())
    RETURN_IF_ERROR(writer.Write(HistoryPage(content.history, content.runs)));
  if (content.map) RETURN_IF_ERROR(writer.Write(MapPage(*content.map)));
  if (HasChecks(content)) {
    RETURN_IF_ERROR(writer.Write(DetectionPage(
        content.detections, content.catalogue ? &*content.catalogue : nullptr, content.mutated)));
  }
  for (const auto& run : content.runs.all()) RETURN_IF_ERROR(writer.WriteRun(content.runs, *run));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SiteReport> WriteSite(const SiteContent& content, const fs::path& out) {
  RETURN_IF_ERROR(CheckReplaceable(out));
  const fs::path parent = fs::absolute(out).parent_path();
  ASSIGN_OR_RETURN(const StagingFolder staging, StagingFolder::Create(parent, "site"));
  Writer writer(staging.path(), FrameOf(content));
  RETURN_IF_ERROR(WritePages(content, writer));
  RETURN_IF_ERROR(MoveInto(staging.path(), out));
  return writer.report();
}

}  // namespace bkm
