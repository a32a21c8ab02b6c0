// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/check_session.h"

#include <algorithm>
#include <future>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/check/declared_requirements.h"
#include "harness/history/api_session.h"
#include "harness/publish/layouts.h"
#include "harness/publish/rows.h"
#include "harness/report/command_text.h"
#include "harness/runner/devices.h"
#include "harness/session/measurement.h"
#include "harness/session/sandbox_levels.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNearest = 3;

absl::StatusOr<std::vector<CheckedPairing>> FindPairings(const UserEnvironment& environment) {
  std::vector<CheckedPairing> pairings;
  for (const EngineKind* kind : environment.Kinds()) {
    pairings.push_back(
        {.kind = kind,
         .engine = kind->engine_source.empty() ? "" : environment.LabelOf(kind->engine_source),
         .library = environment.LabelOf(kind->library_source)});
  }
  if (pairings.empty()) {
    return absl::NotFoundError(
        absl::StrCat(environment.python().string(),
                     " has neither torchtitan nor transformers installed: install one, or name "
                     "another interpreter with --python PATH"));
  }
  if (environment.VersionOf("torch").empty()) {
    return absl::NotFoundError(absl::StrCat(
        environment.python().string(),
        " has no torch installed: install it, or name another interpreter with --python PATH"));
  }
  return pairings;
}

absl::Status CheckSources(const UserEnvironment& environment, ApiSession& api,
                          std::vector<CheckedPairing>& pairings) {
  for (CheckedPairing& pairing : pairings) {
    if (pairing.kind->entry_modules.empty() || pairing.kind->engine_source.empty()) continue;
    ASSIGN_OR_RETURN(Versions* const versions, api.versions());
    ASSIGN_OR_RETURN(ApiCheck* const check, api.CheckOf(*pairing.kind));
    const auto tree = [&](const std::string& source) {
      const InstalledPackage& package = *environment.Find(source);
      return versions->InFolder(package.folder, package.package);
    };
    ASSIGN_OR_RETURN(const Tree engine, tree(pairing.kind->engine_source));
    ASSIGN_OR_RETURN(const Tree library, tree(pairing.kind->library_source));
    ASSIGN_OR_RETURN(pairing.breaks, check->CheckRed(engine, library));
  }
  return absl::OkStatus();
}

// The devices that the cells may use. An error: they ask for one that cannot be used.
absl::StatusOr<std::vector<CudaDevice>> DevicesFor(const CheckOptions& options,
                                                   const UserEnvironment& environment) {
  if (options.device == "cpu") return std::vector<CudaDevice>();
  ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, FindDevices());
  if (devices.empty())
    return absl::FailedPreconditionError(
        "--device cuda: nvidia-smi lists no CUDA device of this machine");
  const std::string torch = environment.VersionOf("torch");
  if (IsForCpus(torch))
    return absl::FailedPreconditionError(
        absl::StrCat("--device cuda: torch ", torch, " of this environment is built for CPUs"));
  return devices;
}

absl::StatusOr<std::vector<PreparedCell>> CellsOf(const UserEnvironment& environment,
                                                  const std::vector<CheckedPairing>& pairings,
                                                  const WantedCells& wanted) {
  std::vector<PreparedCell> cells;
  for (const CheckedPairing& pairing : pairings) {
    ASSIGN_OR_RETURN(const std::vector<PreparedCell> more,
                     environment.CellsOf(*pairing.kind, wanted));
    cells.insert(cells.end(), more.begin(), more.end());
  }
  if (cells.empty() && wanted.device != "cpu")
    return absl::InvalidArgumentError(
        absl::StrCat("--device ", wanted.device, ": no engine and no library of this environment ",
                     "has an attention and this layout for ", DevicesText(wanted.devices)));
  if (cells.empty() && wanted.layout != "1")
    return absl::InvalidArgumentError(
        absl::StrCat("--layout ", wanted.layout,
                     ": no engine and no library of this environment can be asked for it"));
  // Flex takes longest: started last, it would run alone at the end.
  std::stable_partition(cells.begin(), cells.end(), [](const PreparedCell& cell) {
    return absl::StartsWith(cell.record.cell.probe.attention, "flex");
  });
  return cells;
}

// Fills in the cells of `pairings`. Returns the run directory; empty: the user interrupted.
absl::StatusOr<std::string> RunCells(const Installation& installation, const CheckOptions& options,
                                     const UserEnvironment& environment, const WantedCells& wanted,
                                     std::vector<CheckedPairing>& pairings, RunObserver& observer) {
  RETURN_IF_ERROR(installation.CheckBuilt());
  // The user's own packages run in the strongest sandbox that there is.
  ASSIGN_OR_RETURN(const SandboxLevels levels, SandboxLevels::Ask(installation));
  const SandboxLevel sandbox = levels.Strongest();
  observer.OnNote(absl::StrCat(
      "sandbox: ", Name(sandbox),
      sandbox == SandboxLevel::kFull
          ? ""
          : absl::StrCat(" (", absl::StrJoin(levels.Missing(SandboxLevel::kFull), "; "), ")")));
  ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, CellsOf(environment, pairings, wanted));
  fs::path folder = options.out;
  if (folder.empty()) {
    ASSIGN_OR_RETURN(folder, CreateTempDirectory(CacheDirectory() / "checks", "check-"));
  }
  const RunDirectory directory(fs::absolute(folder));
  RETURN_IF_ERROR(CreateDirectories(directory.root()));
  InterruptSignals signals;
  const Matrix matrix{.name = "check"};
  ASSIGN_OR_RETURN(const RunRecord run, Measure({installation,
                                                 matrix,
                                                 directory,
                                                 {.slots = options.jobs,
                                                  .controls = false,
                                                  .reuse = false,
                                                  .store = false,
                                                  .sandbox = sandbox},
                                                 observer,
                                                 signals},
                                                std::move(cells)));
  if (!run.finished) return std::string();
  for (const CellRecord& cell : run.cells) {
    if (cell.role != CellRole::kSubject) continue;
    for (CheckedPairing& pairing : pairings) {
      if (pairing.kind->name != cell.cell.engine) continue;
      (IsRemark(cell.cell, wanted) ? pairing.remarks : pairing.cells).push_back(cell);
    }
  }
  return directory.root().string();
}

// What the packages of the environment require of each other and do not find.
absl::StatusOr<std::vector<std::string>> Violated(const UserEnvironment& environment) {
  ASSIGN_OR_RETURN(const Uv uv, Uv::Find());
  ASSIGN_OR_RETURN(const std::vector<DistributionFacts> distributions,
                   ReadDistributions(environment.python()));
  return ViolatedRequirements(uv, CellPython(), environment.version(), distributions);
}

// The user does not stand where the lock lies.
void NameLockFrom(const fs::path& folder, PublishedRow& row) {
  if (row.pylock.empty()) return;
  const std::string lock = ShellWord((folder / row.pylock).string());
  for (std::string& line : row.install) line = absl::StrReplaceAll(line, {{row.pylock, lock}});
}

// Fills in what the table says of the pairings with that layout.
absl::Status LookUp(const fs::path& path, const UserEnvironment& environment,
                    const std::string& layout, const std::string& day,
                    std::vector<CheckedPairing>& pairings) {
  ASSIGN_OR_RETURN(TableOnDisk published, ReadPublishedTable(path));
  published.table = OfLayout(std::move(published.table), layout);
  const std::string torch = environment.VersionOf("torch");
  for (CheckedPairing& pairing : pairings) {
    const EngineKind& kind = *pairing.kind;
    if (kind.engine_source.empty()) continue;
    const std::string engine = environment.SpecOf(kind.engine_source).ToString();
    const std::string library = environment.SpecOf(kind.library_source).ToString();
    pairing.row = KnownRow(published.table, {kind.name, engine, library, torch});
    if (AnswerOf(pairing) != CheckAnswer::kWorks)
      pairing.nearest = NearestRows(published.table, pairing, engine, torch, day, kMostNearest);
    for (PublishedRow& row : pairing.nearest) NameLockFrom(published.folder, row);
    if (pairing.row) NameLockFrom(published.folder, *pairing.row);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<CheckReport>> CheckEnvironment(const CheckOptions& options,
                                                            RunObserver& observer) {
  const absl::StatusOr<Layout> layout = ParseLayout(options.layout);
  if (!layout.ok())
    return absl::InvalidArgumentError(absl::StrCat("--layout: ", layout.status().message()));
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  const fs::path python =
      options.python.empty() ? FindUsersPython() : FindNamedPython(options.python);
  if (python.empty())
    return absl::NotFoundError("PATH has no python3: name an interpreter with --python PATH");
  ApiSession api("", "");
  ASSIGN_OR_RETURN(const UserEnvironment environment,
                   UserEnvironment::Read(fs::absolute(python), api.catalog()));
  WantedCells wanted{.model = options.model,
                     .layout = options.layout,
                     .device = options.device,
                     .precision = options.precision};
  ASSIGN_OR_RETURN(wanted.devices, DevicesFor(options, environment));
  ASSIGN_OR_RETURN(std::vector<CheckedPairing> pairings, FindPairings(environment));
  // Compiles beside the source check. If it fails, cells compile for themselves.
  std::future<void> compiled;
  if (!options.sources_only)
    compiled = std::async(std::launch::async, [&] { environment.CompileSubjects(); });
  RETURN_IF_ERROR(CheckSources(environment, api, pairings));
  api.ReportScan(observer);
  std::string run;
  if (!options.sources_only) {
    ASSIGN_OR_RETURN(run, RunCells(installation, options, environment, wanted, pairings, observer));
    if (run.empty()) return std::nullopt;
  }
  const absl::StatusOr<std::vector<std::string>> violated = Violated(environment);
  const std::string day = Today();
  const fs::path table =
      options.table.empty() ? DefaultTable(installation.root) : fs::path(options.table);
  if (!table.empty())
    RETURN_IF_ERROR(LookUp(table, environment, LayoutText(*layout), day, pairings));
  CheckReport report{.environment = environment,
                     .pairings = std::move(pairings),
                     .table = table,
                     .run = run,
                     .layout = LayoutText(*layout),
                     .device = options.device,
                     .day = day};
  if (violated.ok()) {
    report.violated_requirements = *violated;
  } else {
    report.why_no_requirements = std::string(violated.status().message());
  }
  return report;
}

}  // namespace bkm
