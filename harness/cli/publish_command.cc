// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/selection.h"
#include "harness/matrix/matrix.h"
#include "harness/publish/attestation.h"
#include "harness/publish/publication.h"
#include "harness/publish/rows.h"
#include "harness/publish/table_markdown.h"
#include "harness/report/labels.h"
#include "harness/runner/installation.h"
#include "harness/source/git_sources.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

void Tell(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) PrintErrorf("bkm: %s\n", note);
}

class PublishCommand : public CliCommand {
 public:
  const char* name() const override { return "publish"; }
  const char* summary() const override {
    return "Make the table of supported versions, with locks, from finished runs";
  }
  const char* examples() const override {
    return "Writes table.json, table.md, findings.md, table.csv, junit.xml, summary.md, "
           "known-bad.json, badges/*.json, constraints/*.txt, and a "
           "pylock.ROW.toml for each row that works. If several runs contain a cell, the newest "
           "result counts, and older results that contradict it are mentioned. Versions are "
           "joined into a range only if every version between them was run. For commits, this "
           "needs the repository (--git-mirror or the network).\n"
           "Exit 1: with --verify, a row has expired, or a pin of a lock is gone or yanked; with "
           "--check-signature, the signature or a file is not as signed.\n"
           "Examples:\n"
           "  bkm publish runs/bkm --out published\n"
           "  bkm publish runs/releases runs/nightly --out published --max-age 30\n"
           "  bkm publish runs/one-more --onto published --out published\n"
           "  bkm publish --verify published/table.json\n"
           "  bkm publish runs/bkm --out published --sign release.key\n"
           "  bkm publish --check-signature published --key release.pub";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", runs_, "Run directories");
    app.add_option("--out", out_, "Folder for the table and its locks")->capture_default_str();
    app.add_option("--onto", onto_,
                   "Published table (table.json or its folder) to whose rows the runs are added; "
                   "its own runs need not be here. A cell of both has its newer measurement");
    app.add_option("--bisected", searches_,
                   "Run directory of bkm bisect, whose commit findings.md names; repeat the option "
                   "for further ones");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--matrix", matrix_,
                   "Matrix file whose \"sources\" locate further repositories");
    app.add_option("--max-age", max_age_, "Days after which evidence expires")
        ->check(CLI::Range(1, 36500))
        ->capture_default_str();
    app.add_option("--date", date_, "Date of the table, YYYY-MM-DD (default: today, UTC)");
    app.add_flag("--allow-partial", allow_partial_, "Accept unfinished runs; the table marks them");
    app.add_flag(
        "--without-links", without_links_,
        "Do not link from table.md to the run directories, for a table that is copied elsewhere");
    app.add_option("--verify", verify_,
                   "Published table.json: look up every pin of its locks again");
    app.add_option(
        "--sign", sign_,
        "Private key (PEM, Ed25519 or ECDSA): also write attestation.dsse.json, a signed "
        "statement over table, locks, observations, programs and repositories");
    app.add_option("--check-signature", check_signature_,
                   "Folder of a published table: verify its signed statement, without the network");
    app.add_option("--key", key_, "With --check-signature: the public key (PEM)");
    app.add_flag("--json", json_, "Print table.json, or the result of --verify, to stdout");
    app.add_flag("--quiet,-q", quiet_, "Print no summary");
  }

  absl::StatusOr<int> Run() override {
    if (!check_signature_.empty()) return CheckSignature();
    if (verify_.empty() == runs_.empty())
      return absl::InvalidArgumentError(
          "name run directories to publish, or a table with --verify (bkm publish --help)");
    if (!onto_.empty() && !verify_.empty())
      return absl::InvalidArgumentError("--onto adds runs to a table; --verify looks one up again");
    if (date_.empty()) date_ = Today();
    if (DaysAfter(date_, 0) != date_)
      return absl::InvalidArgumentError(
          absl::StrCat("--date '", date_, "' is not a date: use YYYY-MM-DD"));
    if (!matrix_.empty()) {
      ASSIGN_OR_RETURN(const Matrix matrix, ReadMatrix(matrix_));
      RETURN_IF_ERROR(catalog_.Add(matrix.sources, matrix_, "$.sources"));
    }
    ASSIGN_OR_RETURN(const Uv uv, Uv::Find());
    Registry registry(uv, CellPython());
    GitSources sources(catalog_, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    return verify_.empty() ? Publish(registry, sources) : Verify(registry, sources);
  }

 private:
  void Progress(const std::string& what) const {
    if (!quiet_ && !json_) PrintErrorf("bkm: %s\n", what.c_str());
  }

  absl::StatusOr<int> CheckSignature() const {
    if (key_.empty() || !runs_.empty() || !verify_.empty()) {
      return absl::InvalidArgumentError(
          "--check-signature FOLDER needs --key PUBLIC_KEY, and neither runs nor --verify");
    }
    ASSIGN_OR_RETURN(const SigningKey key, SigningKey::ReadPublic(key_));
    const absl::StatusOr<CheckedAttestation> checked = CheckAttestation(check_signature_, key);
    if (absl::IsDataLoss(checked.status())) {
      PrintErrorf("bkm: %s\n", std::string(checked.status().message()));
      return kExitVerdictsDiffer;
    }
    RETURN_IF_ERROR(checked.status());
    Printf("Signed with the key %s: %d files and %d observations are as signed", key.id().c_str(),
           checked->files, checked->observations);
    if (checked->absent > 0) Printf("; %d observations are not here", checked->absent);
    Printf("\n");
    return kExitAsExpected;
  }

  static absl::StatusOr<ProgramDigests> Programs() {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    ProgramDigests programs;
    for (const auto& [name, file] :
         std::map<std::string, fs::path>{{"bkm", "/proc/self/exe"},
                                         {"cell_worker", installation.cell_worker()},
                                         {"reference_worker", installation.reference_worker()}}) {
      ASSIGN_OR_RETURN(programs[name], Sha256OfFile(file));
    }
    ASSIGN_OR_RETURN(programs["cell_code"], installation.CellCodeDigest());
    return programs;
  }

  // The key was read before anything was published.
  absl::Status Sign(const PublishedTable& table, const SigningKey& key, GitSources& sources) const {
    ASSIGN_OR_RETURN(const std::vector<SourceHead> heads, HeadsOf(table, sources));
    ASSIGN_OR_RETURN(const ProgramDigests programs, Programs());
    ASSIGN_OR_RETURN(const OrderedJson statement, StatementOf(table, out_, programs, heads));
    return WriteAttestation(statement, out_, key);
  }

  absl::StatusOr<int> Publish(Registry& registry, GitSources& sources) {
    std::optional<SigningKey> key;
    if (!sign_.empty()) {
      ASSIGN_OR_RETURN(key, SigningKey::ReadPrivate(sign_));
    }
    std::optional<TableOnDisk> older;
    if (!onto_.empty()) {
      ASSIGN_OR_RETURN(older, ReadPublishedTable(onto_));
    }
    std::vector<RunEvidence> runs;
    for (const std::string& run : runs_) {
      ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunEvidence(run, out_, allow_partial_));
    }
    std::map<std::string, BisectReport> searches;  // by name
    const auto read = [&](const std::string& name, const fs::path& file) -> absl::Status {
      ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
      ASSIGN_OR_RETURN(searches[name], BisectReportFromJson(json, file));
      return absl::OkStatus();
    };
    if (older) {
      std::error_code absent;
      for (const auto& entry : fs::directory_iterator(older->folder / "searches", absent)) {
        if (entry.path().extension() == ".json")
          RETURN_IF_ERROR(read(entry.path().stem(), entry.path()));
      }
    }
    for (const std::string& folder : searches_)
      RETURN_IF_ERROR(read(fs::absolute(folder).lexically_normal().filename(),
                           fs::path(folder) / "bisect.json"));
    Progress("looking up intermediate versions and locks in the repositories and the registry");
    VersionHistory history(catalog_, sources,
                           [&](const std::string& package, const std::string& version) {
                             return registry.ReleaseBefore(package, version);
                           });
    ASSIGN_OR_RETURN(Publication publication, MakePublication(runs,
                                                              {.date = date_,
                                                               .max_age_days = max_age_,
                                                               .cache = CacheDirectory(),
                                                               .older = older ? &*older : nullptr,
                                                               .folder = out_},
                                                              catalog_, history, registry));
    publication.searches = std::move(searches);
    for (std::string& note : AddHorizons(publication.table, sources))
      publication.notes.push_back(std::move(note));
    RETURN_IF_ERROR(WritePublication(
        publication, out_, without_links_ ? EvidenceLinks::kNone : EvidenceLinks::kToRuns));
    if (key) RETURN_IF_ERROR(Sign(publication.table, *key, sources));
    Tell(publication.notes);
    if (json_) {
      Print(ToText(ToJson(publication.table)));
    } else if (!quiet_) {
      Print(StepSummary(publication.table));
      Printf("\nTable: %s (%zu rows, %zu locks)\n", (fs::path(out_) / "table.md").c_str(),
             publication.table.rows.size(), publication.pylocks.size());
    }
    return kExitAsExpected;
  }

  absl::StatusOr<int> Verify(Registry& registry, GitSources& sources) {
    ASSIGN_OR_RETURN(const TableOnDisk published, ReadPublishedTable(verify_));
    const PublishedTable& table = published.table;
    Progress(absl::StrCat("looking up the pins of ", table.rows.size(), " rows"));
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const Verification found,
                     VerifyTable(table, published.folder, date_, PackageReader(CellPython()),
                                 registry, sources, notes));
    Tell(notes);
    Print(json_ ? ToText(ToJson(found)) : VerificationText(found));
    return found.stale.empty() ? kExitAsExpected : kExitVerdictsDiffer;
  }

  std::vector<std::string> runs_;
  std::string onto_;
  std::vector<std::string> searches_;
  std::string out_ = "published";
  std::string git_mirror_;
  std::string matrix_;
  int max_age_ = kMaxAgeDays;
  std::string date_;
  bool allow_partial_ = false;
  bool without_links_ = false;
  std::string verify_;
  std::string sign_;
  std::string check_signature_;
  std::string key_;
  bool json_ = false;
  bool quiet_ = false;
  SourceCatalog catalog_;
};

}  // namespace

std::unique_ptr<CliCommand> MakePublishCommand() { return std::make_unique<PublishCommand>(); }

}  // namespace bkm
