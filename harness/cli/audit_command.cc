// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/check/audit.h"
#include "harness/check/user_environment.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/publish/rows.h"
#include "harness/runner/installation.h"
#include "harness/source/download.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What an interpreter has installed, as pins.
absl::StatusOr<PinnedVersions> PinsOf(const fs::path& python) {
  ASSIGN_OR_RETURN(const UserEnvironment environment,
                   UserEnvironment::Read(python, SourceCatalog()));
  PinnedVersions pins{.origin = environment.python().string()};
  for (const EngineKind& kind : EngineKinds()) {
    for (const std::string& source : {kind.engine_source, kind.library_source}) {
      if (source.empty() || environment.Find(source) == nullptr || pins.Find(source) != nullptr)
        continue;
      const SubjectSpec spec = environment.SpecOf(source);
      VersionPin package{.name = source};
      if (spec.source == SourceKind::kGit)
        package.commit = spec.revision;
      else if (spec.source == SourceKind::kPypi)
        package.version = spec.revision;
      else
        package.why_open = "no version (a folder on the path)";
      pins.packages.push_back(std::move(package));
    }
  }
  if (const std::string torch = environment.VersionOf("torch"); !torch.empty())
    pins.packages.push_back({.name = "torch", .version = torch});
  return pins;
}

absl::StatusOr<Json> DownloadedJson(const std::string& url) {
  ASSIGN_OR_RETURN(const fs::path folder, CreateTempDirectory(fs::temp_directory_path(), "bkm"));
  const absl::Status downloaded = Download(CellPython(), url, folder / "table.json");
  absl::StatusOr<std::string> text = ReadFile(folder / "table.json");
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  RETURN_IF_ERROR(downloaded);
  if (!text.ok()) return text.status();
  return ParseJson(*text, url);
}

class AuditCommand : public CliCommand {
 public:
  const char* name() const override { return "audit"; }
  const char* summary() const override {
    return "Look up the versions of a file or an environment in the published table; runs nothing";
  }
  const char* examples() const override {
    return "A file is a requirements file, uv.lock, pylock.toml or pyproject.toml. Without one, "
           "the environment of --python is read, else the active one. Versions that a file leaves "
           "open (a range, a marker, a URL without a commit) are told, not guessed.\n"
           "A fault that holds only for a layout, an option or a model is a warning, unless --uses "
           "says that you train so. `bkm check` runs the pair on this machine instead.\n"
           "Exit 0: nothing is known to be wrong. Exit 1: a pair is broken or silently wrong, or a "
           "fault applies; with --strict also if a pair is unknown. Exit 2: the file or the table "
           "cannot be read.\n"
           "Examples:\n"
           "  bkm audit uv.lock\n"
           "  bkm audit requirements.txt --uses layout=dp_replicate,model=qwen3 --strict\n"
           "  bkm audit --python ~/venvs/train/bin/python --json\n"
           "  bkm audit pylock.toml --format sarif > bkm.sarif";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("file", files_,
                   "Requirements files, uv.lock, pylock.toml or pyproject.toml: each is an answer "
                   "of its own");
    app.add_option("--python", python_,
                   "Python interpreter of an environment: a path, or a name in PATH");
    app.add_option("--table", table_,
                   "Published table.json: a file, its folder, or a URL (default: the one that came "
                   "with this installation)");
    app.add_option("--uses", uses_,
                   "How you train, as keys of a cell: layout=dp_replicate,model=qwen3. Faults that "
                   "need no more than this count");
    app.add_flag("--strict", strict_, "Unknown pairs count, too");
    app.add_option("--format", format_, "text, json, github (annotations) or sarif")
        ->check(CLI::IsMember({"text", "json", "github", "sarif"}))
        ->capture_default_str();
    app.add_flag("--json", json_, "Print as JSON: --format json");
  }

  absl::StatusOr<int> Run() override {
    if (!files_.empty() && !python_.empty())
      return absl::InvalidArgumentError("name a file or --python, not both");
    if (json_) format_ = "json";
    if (files_.size() > 1 && (format_ == "json" || format_ == "sarif"))
      return absl::InvalidArgumentError(
          absl::StrCat("--format ", format_, " takes one file, and here are ", files_.size()));
    ASSIGN_OR_RETURN(const Uses uses, ParseUses(uses_));
    ASSIGN_OR_RETURN(const std::vector<PinnedVersions> all, Pins());
    ASSIGN_OR_RETURN(const PublishedTable table, Table());
    bool has_findings = false;
    for (const PinnedVersions& pins : all) {
      AuditReport report = Audit(pins, table, uses, Today());
      report.table = table_;
      Print(TextOf(report));
      has_findings |= HasFindings(report, strict_);
    }
    return has_findings ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  std::string TextOf(const AuditReport& report) const {
    if (format_ == "json") return ToText(ToJson(report));
    if (format_ == "github") return ToGithub(report, strict_);
    if (format_ == "sarif") return ToText(ToSarif(report, strict_));
    return ToSummary(report);
  }

  absl::StatusOr<std::vector<PinnedVersions>> Pins() const {
    std::vector<PinnedVersions> all;
    for (const std::string& file : files_) {
      ASSIGN_OR_RETURN(all.emplace_back(), ReadPinnedVersions(file));
    }
    if (!all.empty()) return all;
    const fs::path python = python_.empty() ? FindUsersPython() : FindNamedPython(python_);
    if (python.empty())
      return absl::NotFoundError(
          "no file, no active environment and no python3 in PATH: name a file or --python");
    ASSIGN_OR_RETURN(all.emplace_back(), PinsOf(python));
    return all;
  }

  // Sets table_ to where the table was found.
  absl::StatusOr<PublishedTable> Table() {
    if (table_.starts_with("https://") || table_.starts_with("http://")) {
      ASSIGN_OR_RETURN(const Json json, DownloadedJson(table_));
      return PublishedTableFromJson(json, table_);
    }
    if (table_.empty()) {
      ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
      table_ = DefaultTable(installation.root).string();
      if (table_.empty())
        return absl::NotFoundError(
            "no published table came with this installation: name one with --table");
    }
    ASSIGN_OR_RETURN(TableOnDisk table, ReadPublishedTable(table_));
    return std::move(table.table);
  }

  std::vector<std::string> files_;
  std::string python_, table_, uses_, format_ = "text";
  bool strict_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeAuditCommand() { return std::make_unique<AuditCommand>(); }

}  // namespace bkm
