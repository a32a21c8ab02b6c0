// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/user_environment.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/matrix/plan.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/probe_folder.h"
#include "harness/runner/devices.h"
#include "harness/runner/installation.h"
#include "harness/runtime/bytecode.h"

namespace bkm {

namespace fs = std::filesystem;

namespace {

// A quarter of the default probe's tokens gives an answer in seconds. Several documents are needed
// because masks fail at their borders. A model with a sliding window needs longer documents, and so
// does flex_attention on a GPU: torch 2.11.0 cannot compile it for 66 tokens.
Json DocumentsFor(const std::string& model, const std::string& device) {
  const absl::StatusOr<ModelShape> shape = FindModelShape(model);
  const bool has_window = shape.ok() && shape->window > 0;
  return has_window || device != "cpu" ? Json(Probe().documents) : Json{24, 40, 2};
}

// The attention that runs in every precision and asks least of torch.
std::string PlainAttentionOf(const EngineKind& kind) {
  const bool has_sdpa =
      std::find(kind.attentions.begin(), kind.attentions.end(), "sdpa") != kind.attentions.end();
  return has_sdpa && kind.library_in_runtime ? "sdpa" : kind.attentions.front();
}

// What a user can run: nobody who does not have the package of flash_attention_3 asks for it.
std::vector<std::string> AttentionsOf(const EngineKind& kind, bool has_flash_attn_3) {
  std::vector<std::string> attentions = kind.attentions;
  if (!has_flash_attn_3) std::erase(attentions, "flash_attention_3");
  return attentions;
}

// The program of that name in PATH; empty where there is none.
fs::path InPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::error_code error;
  for (const absl::string_view folder : absl::StrSplit(path ? path : "", ':', absl::SkipEmpty())) {
    const fs::path program = fs::path(std::string(folder)) / name;
    if (fs::is_regular_file(program, error)) return program;
  }
  return {};
}

// Like the shims of pyenv.
bool IsScript(const fs::path& program) {
  char begin[2] = {};
  std::ifstream file(program, std::ios::binary);
  return file.read(begin, 2) && begin[0] == '#' && begin[1] == '!';
}

}  // namespace

fs::path FindNamedPython(const std::string& name) {
  const fs::path found = absl::StrContains(name, '/') ? fs::path() : InPath(name);
  return found.empty() ? fs::absolute(name) : found;
}

fs::path FindUsersPython() {
  // BKM_USER_ENV: tools/bkm moves VIRTUAL_ENV there, so that uv does not use it.
  for (const char* variable : {"BKM_USER_ENV", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder) return fs::path(folder) / "bin/python";
  }
  return InPath("python3");
}

absl::StatusOr<UserEnvironment> UserEnvironment::Read(fs::path python,
                                                      const SourceCatalog& catalog) {
  UserEnvironment environment;
  environment.python_ = std::move(python);
  ASSIGN_OR_RETURN(environment.facts_, ReadInterpreter(environment.python_));
  if (IsScript(environment.python_)) environment.python_ = environment.facts_.program;
  environment.alone_ = RunsAlone(environment.python_, MinorVersion(environment.facts_.python));
  std::vector<std::string> packages = {"torch"};
  for (const std::string& name : catalog.names()) packages.push_back(catalog.Find(name)->package);
  ASSIGN_OR_RETURN(const std::vector<InstalledPackage> installed,
                   ReadInstalled(environment.python_, packages));
  for (const InstalledPackage& package : installed) {
    for (const std::string& name : catalog.names()) {
      if (package.package == catalog.Find(name)->package) environment.installed_[name] = package;
    }
    const std::string version = MinorVersion(environment.facts_.python);
    if (package.package == "torch" && !HasBytecode(package.folder / "torch", version)) {
      environment.bytecode_ =
          CacheDirectory() / "bytecode" /
          absl::StrCat("made-", Sha256(environment.python_.string()).substr(0, 16));
    }
  }
  return environment;
}

void UserEnvironment::CompileSubjects() const {
  if (bytecode_.empty() || !CreateDirectories(bytecode_).ok()) return;
  std::error_code ignored;  // the time only guides garbage collection
  fs::last_write_time(bytecode_, fs::file_time_type::clock::now(), ignored);
  std::set<fs::path> packages;
  for (const EngineKind* kind : Kinds()) {
    for (const std::string& source : {kind->engine_source, kind->library_source}) {
      const bool is_shared = source == kind->library_source && kind->library_in_runtime;
      if (source.empty() || is_shared) continue;
      packages.insert(installed_.at(source).folder / installed_.at(source).package);
    }
  }
  for (const fs::path& package : packages)
    CompileBytecodeElsewhere(python_, package, bytecode_).IgnoreError();
}

std::string UserEnvironment::VersionOf(const std::string& distribution) const {
  const auto found = facts_.packages.find(distribution);
  return found == facts_.packages.end() ? "" : found->second;
}

RuntimeLock UserEnvironment::LockAs(const std::string& runtime) const {
  return ExistingLock(runtime, python_, MinorVersion(facts_.python), facts_.packages);
}

WorkerSetup UserEnvironment::Worker(const std::string& key) const {
  WorkerSetup worker = {.key = key, .python = python_, .alone = alone_, .bytecode = bytecode_};
  // Packages that are installed for development lie outside the environment.
  for (const auto& [source, package] : installed_) worker.reads.push_back(package.folder);
  return worker;
}

const InstalledPackage* UserEnvironment::Find(const std::string& source) const {
  const auto found = installed_.find(source);
  return found == installed_.end() ? nullptr : &found->second;
}

SubjectSpec UserEnvironment::SpecOf(const std::string& source) const {
  const InstalledPackage& package = installed_.at(source);
  if (!package.commit.empty()) return {SourceKind::kGit, source, package.commit};
  if (!package.version.empty()) return {SourceKind::kPypi, source, package.version};
  return {SourceKind::kPath, source, package.folder.string()};
}

std::string UserEnvironment::LabelOf(const std::string& source) const {
  const InstalledPackage& package = installed_.at(source);
  return package.commit.empty() ? package.version : package.commit.substr(0, 9);
}

std::vector<const EngineKind*> UserEnvironment::Kinds() const {
  return KindsAmong([this](const std::string& source) { return Find(source) != nullptr; });
}

Subject UserEnvironment::SubjectOf(const SubjectSpec& spec, const std::string& source) const {
  const InstalledPackage& package = installed_.at(source);
  // No tree: the package is imported from where it is installed.
  return {.spec = spec,
          .label = LabelOf(source),
          .package = package.package,
          .content = Sha256(absl::StrCat(spec.ToString(), " in ", package.folder.string()))};
}

bool IsRemark(const Cell& cell, const WantedCells& wanted) {
  return wanted.precision.empty() &&
         cell.probe.precision != FindEngineKind(cell.engine)->own_precision;
}

absl::StatusOr<std::vector<PreparedCell>> UserEnvironment::CellsOf(
    const EngineKind& kind, const WantedCells& wanted) const {
  const SubjectSpec library = SpecOf(kind.library_source);
  Json engine = {{"kind", kind.name}};
  if (!kind.engine_source.empty())
    engine["subjects"] = Json::array({SpecOf(kind.engine_source).ToString()});
  Json options = Json::object();
  for (const auto& [name, value] : kind.own_options) options[name] = Json::parse(value);
  const auto group = [&](const Json& attentions, const std::string& precision) {
    return Json{{"engine", engine},
                {"library", Json::array({library.ToString()})},
                {"runtime", "yours"},
                {"probe",
                 {{"model", wanted.model},
                  {"attention", attentions},
                  {"precision", precision},
                  {"engine_options", Json::array({options})},
                  {"device", wanted.device},
                  {"layout", wanted.layout},
                  // On a GPU the default probe, whose golden and floors come with bkm.
                  {"steps", wanted.device == "cpu" ? 1 : Probe().steps},
                  {"documents", DocumentsFor(wanted.model, wanted.device)}}}};
  };
  const std::string precision = wanted.precision.empty() ? kind.own_precision : wanted.precision;
  std::vector<std::string> attentions = AttentionsOf(kind, !VersionOf("flash-attn-3").empty());
  // flash_attn's kernels take no fp32: there, a cell in bf16 says more than a refusal.
  const bool flash_in_bf16 = wanted.precision.empty() && precision == "fp32" &&
                             std::erase(attentions, "flash_attention_2") > 0;
  Json groups = {group(attentions, precision)};
  if (flash_in_bf16) groups.push_back(group(Json::array({"flash_attention_2"}), "bf16"));
  if (wanted.precision.empty() && !kind.engine_source.empty())
    groups.push_back(group(Json::array({PlainAttentionOf(kind)}),
                           kind.own_precision == "bf16" ? "fp32" : "bf16"));
  ASSIGN_OR_RETURN(const Matrix matrix,
                   MatrixFromJson({{"schema", 1}, {"name", "check"}, {"groups", groups}}, "check"));
  const PlanEnvironment world = {
      .resolve = [&](const SubjectSpec& spec) -> absl::StatusOr<Subject> {
        const bool is_library = spec == library;
        return SubjectOf(spec, is_library ? kind.library_source : kind.engine_source);
      },
      .torch_of_runtime = [&](const std::string&) -> absl::StatusOr<std::string> {
        return VersionOf("torch");
      },
      .devices = [&]() -> absl::StatusOr<std::vector<CudaDevice>> { return wanted.devices; }};
  ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan, ExpandMatrix(matrix, {}, world));
  const auto lock = std::make_shared<const RuntimeLock>(LockAs("yours"));
  std::vector<PreparedCell> cells;
  for (const PlannedCell& planned : plan) {
    if (!planned.included || planned.is_stopped()) continue;
    PreparedCell cell;
    cell.record.cell = planned.cell;
    cell.record.id = planned.id;
    cell.record.dir = CellDirectory(planned.cell, planned.id);
    cell.record.lock = lock->Key();
    if (kind.library_in_runtime) {
      cell.record.library_version = installed_.at(kind.library_source).version;
    } else {
      cell.library = SubjectOf(library, kind.library_source);
    }
    if (planned.cell.engine_subject)
      cell.engine = SubjectOf(*planned.cell.engine_subject, kind.engine_source);
    cell.worker = Worker(cell.record.lock);
    cell.lock = lock;
    UseDevices(wanted.devices, matrix.limits.memory_mib, cell);
    ASSIGN_OR_RETURN(cell.probe_folder, WriteProbeFolder(planned.cell.probe, CacheDirectory()));
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace bkm
