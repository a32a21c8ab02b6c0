// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/publication.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/publish/badges.h"
#include "harness/publish/faults.h"
#include "harness/publish/findings.h"
#include "harness/publish/older_rows.h"
#include "harness/publish/row_lock.h"
#include "harness/publish/rows.h"
#include "harness/publish/table_csv.h"
#include "harness/publish/table_junit.h"
#include "harness/publish/table_markdown.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// "verl-fsdp-0.9.1", of letters, digits and a few marks.
std::string FileNameOf(const std::string& engine, const PublishedVersion& version) {
  std::string name = absl::StrCat(engine, "-", ShortLabel(version));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  }
  return name;
}

std::string ConstraintsName(const PublishedRow& row) {
  const PublishedVersion& version = HasEngine(row) ? row.engine_version : row.library_to;
  return absl::StrCat("constraints/", FileNameOf(row.engine, version), ".txt");
}

// Takes a row's lock from an older table's folder, if the row was in it. Whether it did.
absl::StatusOr<bool> TakeOlderLock(PublishedRow& row, const TableOnDisk& older,
                                   const SourceCatalog& catalog, Publication& publication) {
  const std::vector<PublishedRow>& rows = older.table.rows;
  const auto known = std::find_if(rows.begin(), rows.end(), [&](const PublishedRow& other) {
    return other.lock == row.lock && other.engine == row.engine &&
           other.engine_version == row.engine_version && other.library_to == row.library_to;
  });
  if (known == rows.end()) return false;
  row.python = known->python;
  if (!Works(row) || known->pylock.empty()) return true;
  row.pylock = PylockName(row);
  ASSIGN_OR_RETURN(publication.pylocks[row.pylock], ReadFile(older.folder / known->pylock));
  row.install = InstallLines(row, catalog);
  const std::string name = ConstraintsName(row);
  const absl::StatusOr<std::string> constraints = ReadFile(older.folder / name);
  if (constraints.ok()) publication.constraints.emplace(name, *constraints);
  return true;
}

absl::Status AddLock(PublishedRow& row, LockFinder& locks, const TableOnDisk* older,
                     const SourceCatalog& catalog, Registry& registry, Publication& publication) {
  if (row.lock.empty()) return absl::OkStatus();
  const absl::StatusOr<RuntimeLock> lock = locks.Find(row.lock);
  if (!lock.ok() && older != nullptr) {
    ASSIGN_OR_RETURN(const bool is_taken, TakeOlderLock(row, *older, catalog, publication));
    if (is_taken) return absl::OkStatus();
  }
  if (lock.ok()) row.python = lock->python;
  if (lock.ok() && row.torch.empty()) row.torch = lock->VersionOf("torch");
  if (!Works(row)) return absl::OkStatus();
  const absl::StatusOr<std::string> text =
      lock.ok() ? PylockText(row, *lock, catalog, registry) : lock.status();
  if (absl::IsUnavailable(text.status())) return text.status();
  if (text.ok()) {
    row.pylock = PylockName(row);
    publication.pylocks[row.pylock] = *text;
  } else {
    publication.notes.push_back(
        absl::StrCat("no lock for ", row.id, ": ", std::string(text.status().message())));
  }
  row.install = InstallLines(row, catalog);
  // Rows are sorted newest first.
  const std::string constraints = ConstraintsName(row);
  if (lock.ok() && !publication.constraints.contains(constraints)) {
    if (std::string lines = ConstraintsText(row, *lock, catalog); !lines.empty())
      publication.constraints[constraints] = std::move(lines);
  }
  return absl::OkStatus();
}

// Removes files of an older table, which would otherwise stay in `folder` unnoticed.
absl::Status RemoveOlder(const fs::path& folder, const std::map<std::string, std::string>& files) {
  std::error_code error;
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "pylock.") && absl::EndsWith(name, ".toml"))
      old.push_back(entry.path());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "badges", error)) {
    if (entry.path().extension() == ".json") old.push_back(entry.path());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "constraints", error)) {
    if (entry.path().extension() == ".txt") old.push_back(entry.path());
  }
  for (const fs::path& path : old) {
    if (!files.contains(path.lexically_relative(folder).string()))
      RETURN_IF_ERROR(RemoveTree(path));
  }
  return absl::OkStatus();
}

struct LockedCommit {
  std::string name;
  std::string commit;
};

// The commits of a row's pair. Its packages are in its lock.
std::vector<LockedCommit> CommitsOf(const PublishedRow& row) {
  std::vector<LockedCommit> commits;
  for (const std::string& text : {row.engine_version.subject, row.library_to.subject}) {
    const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text);
    if (spec.ok() && spec->source == SourceKind::kGit)
      commits.push_back({spec->name, spec->revision});
  }
  return commits;
}

std::string BackendOf(const std::string& version) {
  const size_t plus = version.find('+');
  return plus == std::string::npos ? "" : version.substr(plus + 1);
}

absl::StatusOr<int> VerifyPins(const PublishedRow& row, const fs::path& folder,
                               const PackageReader& reader, Registry& registry, StaleRow& stale) {
  const fs::path path = folder / row.pylock;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<PinnedPackage>> packages = reader.ReadPylock(text);
  if (!packages.ok()) return WithContext(packages.status(), path.string());
  std::vector<Pin> pins;
  std::string backend;
  for (const PinnedPackage& package : *packages) {
    if (package.version.empty()) continue;  // a commit
    pins.push_back({package.name, package.version});
    if (package.name == "torch") backend = BackendOf(package.version);
  }
  ASSIGN_OR_RETURN(const auto answers, registry.LookUp(pins, backend));
  for (const PinnedPackage& package : *packages) {
    if (package.version.empty()) continue;
    const Pin pin{package.name, package.version};
    const PinAnswer& answer = answers.at(pin);
    if (!answer.package) {
      stale.gone.push_back(pin.text());
    } else if (std::none_of(package.sha256.begin(), package.sha256.end(),
                            [&](const std::string& hash) {
                              const auto& now = answer.package->sha256;
                              return std::find(now.begin(), now.end(), hash) != now.end();
                            })) {
      stale.gone.push_back(absl::StrCat(pin.text(), " (with these files)"));
    }
    if (!answer.yanked.empty())
      stale.yanked.push_back(absl::StrCat(pin.text(), " (", answer.yanked, ")"));
  }
  return static_cast<int>(pins.size());
}

}  // namespace

absl::StatusOr<Publication> MakePublication(const std::vector<RunEvidence>& runs,
                                            const PublicationOptions& options,
                                            const SourceCatalog& catalog, VersionHistory& history,
                                            Registry& registry) {
  Publication publication;
  publication.table.date = options.date;
  if (options.older != nullptr) publication.table.runs = RunsOf(*options.older, options.folder);
  for (const RunEvidence& run : runs) {
    std::erase_if(publication.table.runs,
                  [&](const PublishedRun& older) { return older.dir == run.published.dir; });
    publication.table.runs.push_back(run.published);
  }
  const MergedEvidence merged = Merge(runs);
  if (merged.folders > 0)
    publication.notes.push_back(absl::StrCat(
        merged.folders, " cells are left out: others cannot install a folder of this machine"));
  if (merged.planted > 0)
    publication.notes.push_back(
        absl::StrCat(merged.planted, " cells are left out: they have planted faults"));
  std::vector<PublishedRow>& rows = publication.table.rows;
  rows = RowsOf(merged, options.max_age_days);
  if (rows.empty()) {
    return absl::InvalidArgumentError(
        "there is no row to publish: no measured cell has a release or commit of an engine or of "
        "a library by its own trainer (controls, folders and planted faults do not count)");
  }
  if (options.older != nullptr)
    rows = WithOlderRows(std::move(rows), *options.older, options.folder, options.max_age_days);
  rows = JoinRanges(std::move(rows), history);
  SortAndName(rows);
  publication.notes.insert(publication.notes.end(), history.troubles().begin(),
                           history.troubles().end());
  LockFinder locks(runs, options.cache);
  for (PublishedRow& row : rows)
    RETURN_IF_ERROR(AddLock(row, locks, options.older, catalog, registry, publication));
  return publication;
}

absl::Status WritePublication(const Publication& publication, const fs::path& folder,
                              EvidenceLinks links) {
  const PublishedTable& table = publication.table;
  std::map<std::string, std::string> files = publication.pylocks;
  files["table.md"] = TableMarkdown(table, links);
  files["table.csv"] = TableCsv(table);
  std::vector<BisectReport> searches;
  for (const auto& [name, search] : publication.searches) {
    files[absl::StrCat("searches/", name, ".json")] = ToText(ToJson(search));
    searches.push_back(search);
  }
  files["findings.md"] = FindingsMarkdown(table, searches);
  files["junit.xml"] = TableJunit(table);
  files["summary.md"] = StepSummary(table);
  files["known-bad.json"] = ToText(ToJson(KnownBadOf(table)));
  files.insert(publication.constraints.begin(), publication.constraints.end());
  for (const auto& [name, badge] : Badges(table)) files["badges/" + name] = ToText(badge);
  std::error_code error;
  const bool replaces = fs::exists(folder / "table.json", error);
  // An interrupted command leaves the old table.json, or the new one with all of its locks.
  for (const auto& [name, text] : files) RETURN_IF_ERROR(WriteFile(folder / name, text));
  RETURN_IF_ERROR(WriteFile(folder / "table.json", ToText(ToJson(table))));
  return replaces ? RemoveOlder(folder, files) : absl::OkStatus();
}

void Describe(Fields& fields, StaleRow& row) {
  fields.Field("row", row.row);
  fields.Field("expired", row.expired);
  fields.Field("gone", row.gone);
  fields.Field("yanked", row.yanked);
}

void Describe(Fields& fields, Verification& verification) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
  fields.Field("rows", verification.rows);
  fields.Field("locks", verification.locks);
  fields.Field("pins", verification.pins);
  fields.Field("stale", verification.stale);
}

OrderedJson ToJson(const Verification& verification) { return WriteFields(verification); }

std::string VerificationText(const Verification& verification) {
  std::string out;
  for (const StaleRow& row : verification.stale) {
    std::vector<std::string> what;
    if (row.expired) what.push_back("its evidence is too old");
    if (!row.gone.empty()) what.push_back(absl::StrCat("gone: ", absl::StrJoin(row.gone, ", ")));
    if (!row.yanked.empty())
      what.push_back(absl::StrCat("yanked: ", absl::StrJoin(row.yanked, ", ")));
    absl::StrAppend(&out, row.row, ": ", absl::StrJoin(what, "; "), "\n");
  }
  absl::StrAppend(&out, verification.rows, " rows, ", verification.locks, " locks with ",
                  verification.pins, " pins looked up: ", verification.stale.size(),
                  " rows no longer hold\n");
  return Printable(std::move(out));
}

absl::StatusOr<Verification> VerifyTable(const PublishedTable& table, const fs::path& folder,
                                         const std::string& date, const PackageReader& reader,
                                         Registry& registry, GitSources& sources,
                                         std::vector<std::string>& notes) {
  Verification verification{.rows = static_cast<int>(table.rows.size())};
  for (const PublishedRow& row : table.rows) {
    StaleRow stale{.row = row.id, .expired = IsExpired(row, date)};
    if (!row.pylock.empty()) {
      ++verification.locks;
      ASSIGN_OR_RETURN(const int pins, VerifyPins(row, folder, reader, registry, stale));
      verification.pins += pins;
      for (const LockedCommit& commit : CommitsOf(row)) {
        const absl::Status found = sources.Find(commit.name, commit.commit).status();
        if (absl::IsNotFound(found)) {
          stale.gone.push_back(absl::StrCat("git:", commit.name, "@", commit.commit));
        } else if (!found.ok()) {
          notes.push_back(absl::StrCat(row.id, ": not looked up: ", std::string(found.message())));
        }
      }
    }
    if (stale.expired || !stale.gone.empty() || !stale.yanked.empty())
      verification.stale.push_back(std::move(stale));
  }
  return verification;
}

}  // namespace bkm
