// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/task.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/model/layout.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

const EngineKind& KindOf(const Cell& cell) {
  const EngineKind* kind = FindEngineKind(cell.engine);
  HARNESS_CHECK(kind != nullptr) << "unknown engine kind " << cell.engine;
  return *kind;
}

Json TreeOf(const std::optional<Subject>& subject) {
  // A package of the runtime has no tree.
  return subject && !subject->tree.empty() ? Json(subject->tree.string()) : Json();
}
Json ContentOf(const std::optional<Subject>& subject) {
  return subject ? Json(subject->content) : Json();
}

// The import name of the library's code: its source tree's, or the installed package's.
std::string LibraryPackage(const PreparedCell& cell) {
  return cell.library ? cell.library->package : KindOf(cell.record.cell).library_source;
}

// Whether the library alone can run the probe.
bool HasControl(const EngineKind& control, const Probe& probe) {
  if (probe.head != "lm") return false;
  const std::vector<std::string>& offered = control.layouts;
  return std::all_of(
      LayoutDimensions().begin(), LayoutDimensions().end(), [&](const LayoutDimension& dimension) {
        return probe.layout.*dimension.degree == 1 ||
               std::find(offered.begin(), offered.end(), dimension.name) != offered.end();
      });
}

// What a cell may write beyond its limit because the probe asks for it: the largest model is 300
// MiB, and a checkpoint has its two moments, too. A trainer saves one at its end; of one that has
// to save each step, two are there at once, and may hold the weights twice. On a GPU, attention is
// compiled: the caches of torch's compiler took more than 64 MiB for one step of flex.
int MoreOutputMib(const Probe& probe) {
  const int for_gpu = probe.device != "cpu" ? 2048 : 0;
  if (probe.drive == "trainer")
    return (probe.export_weights || probe.resume_checkpoint ? 3072 : 1024) + for_gpu;
  return (probe.export_weights ? 1024 : 0) + (probe.resume_checkpoint ? 1024 : 0) + for_gpu;
}

// The faults that the worker plants in memory.
std::vector<std::string> FaultsOf(const Cell& cell) {
  std::vector<std::string> faults;
  std::copy_if(cell.plant.begin(), cell.plant.end(), std::back_inserter(faults),
               [](const std::string& plant) { return plant != kRecordLines && !IsMutant(plant); });
  return faults;
}

// Lines tell what an option does: of the cell that has it, and of its twin.
bool RecordsLines(const PreparedCell& cell) {
  const std::vector<std::string>& plant = cell.record.cell.plant;
  if (std::find(plant.begin(), plant.end(), kRecordLines) != plant.end()) return true;
  return cell.record.role == CellRole::kSubject && plant.empty() &&
         !cell.record.cell.probe.engine_options.empty();
}

// The part of the request that is the same on every machine.
Json Asked(const PreparedCell& cell, const TaskSettings& settings) {
  const Cell& what = cell.record.cell;
  Json limits = {{"timeout_s", settings.limits.timeout_s},
                 {"memory_mib", settings.limits.memory_mib},
                 {"output_mib", settings.limits.output_mib + MoreOutputMib(what.probe)},
                 {"processes", settings.limits.processes}};
  if (settings.limits.cpu_s > 0) limits["cpu_s"] = settings.limits.cpu_s;
  Json asked = {{"type", "run"},
                {"adapter", what.engine},
                {"packages",
                 {{"engine", cell.engine ? Json(cell.engine->package) : Json()},
                  {"library", LibraryPackage(cell)}}},
                {"probe", ToJson(what.probe)},
                {"limits", std::move(limits)},
                {"plant", FaultsOf(what)}};
  if (RecordsLines(cell)) asked["record_lines"] = true;
  return asked;
}

Json Question(const PreparedCell& cell, const TaskSettings& settings) {
  Json question = Asked(cell, settings);
  // Also what the worker is not told: a mutant's files differ.
  question["plant"] = cell.record.cell.plant;
  question["lock"] = cell.record.lock;
  question["probe_folder"] = cell.probe_folder.filename().string();
  question["cell_code"] = settings.cell_code;
  question["repeat"] = cell.record.cell.repeat;
  question["sandbox"] = std::string(Name(settings.sandbox));
  return question;
}

}  // namespace

std::string QuestionText(const PreparedCell& cell, const TaskSettings& settings) {
  return Question(cell, settings).dump();
}

Json MakeRequest(const PreparedCell& cell, const std::filesystem::path& dir,
                 const TaskSettings& settings) {
  Json identity = Question(cell, settings);
  identity["engine"] = ContentOf(cell.engine);
  identity["library"] = ContentOf(cell.library);
  // The content names the package alone. A cell can read the files beside it, too.
  identity["engine_files"] = cell.engine_listing ? cell.engine_listing->digest() : "";
  identity["library_files"] = cell.library_listing ? cell.library_listing->digest() : "";
  Json request = Asked(cell, settings);
  request["key"] = Sha256(identity.dump());
  request["cell"] = cell.record.id;
  request["dir"] = dir.string();
  request["paths"] = {{"engine", TreeOf(cell.engine)}, {"library", TreeOf(cell.library)}};
  request["probe_dir"] = cell.probe_folder.string();
  request["python"] = cell.worker.python.string();
  request["sandbox"] = std::string(Name(settings.sandbox));
  return request;
}

std::string ControlKey(const CellRecord& record) {
  const EngineKind& kind = KindOf(record.cell);
  const std::string control = kind.engine_source.empty() ? kind.name : kind.control;
  if (control.empty() || (kind.engine_source.empty() && !record.cell.plant.empty())) return "";
  if (!HasControl(*FindEngineKind(control), record.cell.probe)) return "";
  return absl::StrCat(control, " ",
                      record.cell.library_subject ? record.cell.library_subject->ToString() : "",
                      " ", record.lock, " ", ToJson(ProbeOfControl(record.cell.probe)).dump());
}

// The question of the twin: lines are recorded, as in the cell itself.
Cell TwinCell(Cell cell, const std::string& option) {
  cell.probe.engine_options.erase(option);
  cell.plant = {kRecordLines};
  cell.repeat = 1;
  return cell;
}

std::vector<PreparedCell> TwinsOf(const PreparedCell& cell) {
  std::vector<PreparedCell> twins;
  const Cell& asked = cell.record.cell;
  if (cell.record.role != CellRole::kSubject || !asked.plant.empty() ||
      KindOf(asked).judged_by_ending_only)
    return twins;
  for (const auto& [option, value] : asked.probe.engine_options) {
    PreparedCell twin = cell;
    twin.record.cell = TwinCell(asked, option);
    twin.record.role = CellRole::kTwin;
    twin.record.id = CellId(twin.record.cell);
    twin.record.dir = CellDirectory(twin.record.cell, twin.record.id);
    twin.record.verdict.reset();
    twin.record.inherited_from.reset();
    twins.push_back(std::move(twin));
  }
  return twins;
}

const CellRecord* FindTwin(const RunRecord& run, const CellRecord& cell,
                           const std::string& option) {
  const std::string id = CellId(TwinCell(cell.cell, option));
  const auto it = std::find_if(run.cells.begin(), run.cells.end(),
                               [&](const CellRecord& other) { return other.id == id; });
  return it == run.cells.end() ? nullptr : &*it;
}

const CellRecord* FindControl(const RunRecord& run, const CellRecord& cell) {
  if (!cell.cell.engine_subject) return nullptr;
  const std::string key = ControlKey(cell);
  if (key.empty()) return nullptr;
  const auto it = std::find_if(run.cells.begin(), run.cells.end(), [&](const CellRecord& other) {
    return other.cell.is_control() && ControlKey(other) == key;
  });
  return it == run.cells.end() ? nullptr : &*it;
}

std::optional<PreparedCell> ControlOf(const PreparedCell& cell) {
  const EngineKind& kind = KindOf(cell.record.cell);
  if (kind.control.empty() || !HasControl(*FindEngineKind(kind.control), cell.record.cell.probe))
    return std::nullopt;
  PreparedCell control = cell;
  Cell& what = control.record.cell;
  what.engine = kind.control;
  what.engine_subject.reset();
  what.engine_label.clear();
  what.lock = cell.record.lock.substr(0, 12);
  what.repeat = 1;
  what.probe = ProbeOfControl(std::move(what.probe));
  what.plant.clear();
  if (!cell.control_probe_folder.empty()) control.probe_folder = cell.control_probe_folder;
  control.engine.reset();
  control.engine_listing.reset();
  control.record.engine_date.clear();
  control.record.role = CellRole::kControl;
  control.record.id = CellId(what);
  control.record.dir = CellDirectory(what, control.record.id);
  control.record.verdict.reset();
  control.record.inherited_from.reset();
  return control;
}

}  // namespace bkm
