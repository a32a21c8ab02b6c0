// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_record.h"

#include <map>

#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json SubjectText(const std::optional<SubjectSpec>& spec) {
  return spec ? Json(spec->ToString()) : Json();
}

const char* RoleName(CellRole role) {
  switch (role) {
    case CellRole::kSubject:
      return "subject";
    case CellRole::kControl:
      return "control";
    case CellRole::kRepeat:
      return "repeat";
  }
  return "";
}

CellRole RoleFromName(const std::string& name) {
  if (name == "control") return CellRole::kControl;
  return name == "repeat" ? CellRole::kRepeat : CellRole::kSubject;
}

Json StabilityToJson(const Stability& stability) {
  return {{"runs", stability.runs},
          {"verdicts", stability.verdicts},
          {"flaky", stability.flaky()},
          {"drift", stability.drift},
          {"multiple", stability.multiple}};
}

absl::StatusOr<Stability> StabilityFromJson(const Json& json, const std::string& origin,
                                            const std::string& path) {
  ObjectReader reader(json, origin, path);
  Stability stability;
  stability.runs = reader.Int("runs", 0, 0, 1 << 20);
  if (const Json* verdicts = reader.Child("verdicts"); verdicts && verdicts->is_object()) {
    for (const auto& [name, count] : verdicts->items()) {
      if (count.is_number_integer()) stability.verdicts[name] = count.get<int>();
    }
  }
  reader.Child("flaky");  // told by the verdicts
  stability.drift = reader.String("drift", "");
  stability.multiple = reader.Number("multiple", 0);
  RETURN_IF_ERROR(reader.Finish());
  return stability;
}

OrderedJson ToJson(const CellRecord& record) {
  const Cell& cell = record.cell;
  const EngineKind* kind = FindEngineKind(cell.engine);
  Json library = SubjectText(cell.library_subject);
  if (library.is_null() && !record.library_version.empty() && kind) {
    library = "pypi:" + kind->library_source + "==" + record.library_version;
  }
  OrderedJson json = {
      {"id", record.id},
      {"role", RoleName(record.role)},
      {"repeat", cell.repeat},
      {"repeat_of", record.repeat_of},
      {"engine", cell.engine},
      {"engine_subject", SubjectText(cell.engine_subject)},
      {"engine_label", cell.engine_label},
      {"engine_date", record.engine_date},
      {"library", kind ? kind->library_source : ""},
      {"library_subject", library},
      {"library_label", cell.library_label.empty() ? record.library_version : cell.library_label},
      {"library_date", record.library_date},
      {"library_pinned", cell.library_subject.has_value()},
      {"runtime", cell.runtime},
      {"torch", cell.torch},
      {"relax", cell.relax},
      {"lock", record.lock},
      {"control_lock", cell.lock},
      {"model", cell.probe.model},
      {"attention", cell.probe.attention},
      {"precision", cell.probe.precision},
      {"device", cell.probe.device},
      {"ranks", cell.probe.ranks},
      {"probe", ToJson(cell.probe)}};
  if (!cell.plant.empty()) json["plant"] = cell.plant;
  if (record.verdict) {
    json["verdict"] = std::string(Name(record.verdict->kind));
    json["stage"] = std::string(Name(record.verdict->stage));
    json["reason"] = record.verdict->reason;
    json["message"] = record.verdict->message;
    json["blame"] = record.verdict->blame;
  } else {
    json["verdict"] = nullptr;
  }
  if (record.stability) json["stability"] = StabilityToJson(*record.stability);
  json["inherited_from"] = OrNull(record.inherited_from);
  json["measured"] = record.measured;
  json["seconds"] = record.seconds;
  json["dir"] = record.dir;
  return json;
}

absl::StatusOr<std::optional<SubjectSpec>> ReadSubject(ObjectReader& reader, const char* key,
                                                       bool pinned) {
  const Json* value = reader.Child(key);
  if (!value || value->is_null() || !pinned) return std::optional<SubjectSpec>();
  ASSIGN_OR_RETURN(SubjectSpec spec, ParseSubjectSpec(reader.String(key)));
  return std::optional<SubjectSpec>(std::move(spec));
}

absl::StatusOr<std::optional<Verdict>> ReadVerdict(ObjectReader& reader,
                                                   const std::string& origin) {
  const Json* kind = reader.Child("verdict");
  if (!kind || kind->is_null()) return std::optional<Verdict>();
  Json json = Json::object();
  for (const char* key : {"verdict", "stage", "reason", "message", "blame"}) {
    if (const Json* value = reader.Child(key)) json[key] = *value;
  }
  ASSIGN_OR_RETURN(Verdict verdict, VerdictFromJson(json, origin));
  return std::optional<Verdict>(std::move(verdict));
}

absl::StatusOr<CellRecord> CellRecordFromJson(const Json& json, const std::string& origin,
                                              const std::string& path) {
  ObjectReader reader(json, origin, path);
  CellRecord record;
  Cell& cell = record.cell;
  record.id = reader.String("id");
  record.role = RoleFromName(reader.OneOf("role", {"subject", "control", "repeat"}));
  cell.repeat = reader.Int("repeat", 1, 1, 1 << 20);
  record.repeat_of = reader.String("repeat_of", "");
  cell.engine = reader.OneOf("engine", EngineKindNames());
  cell.engine_label = reader.String("engine_label");
  cell.library_label = reader.String("library_label");
  record.engine_date = reader.String("engine_date", "");
  record.library_date = reader.String("library_date", "");
  const bool pinned = reader.Bool("library_pinned", true);
  ASSIGN_OR_RETURN(cell.engine_subject, ReadSubject(reader, "engine_subject", true));
  ASSIGN_OR_RETURN(cell.library_subject, ReadSubject(reader, "library_subject", pinned));
  if (!pinned) record.library_version = cell.library_label;
  cell.runtime = reader.String("runtime");
  cell.torch = reader.String("torch");
  cell.relax = reader.Strings("relax");
  cell.plant = reader.Strings("plant");
  cell.lock = reader.String("control_lock", "");
  record.lock = reader.String("lock", "");
  record.dir = reader.String("dir");
  record.measured = reader.String("measured", "");
  record.seconds = reader.Number("seconds", 0);
  if (const Json* from = reader.Child("inherited_from"); from && from->is_string())
    record.inherited_from = from->get<std::string>();
  ASSIGN_OR_RETURN(record.verdict, ReadVerdict(reader, origin));
  if (const Json* stability = reader.Child("stability")) {
    ASSIGN_OR_RETURN(record.stability, StabilityFromJson(*stability, origin, path + ".stability"));
  }
  if (const Json* probe = reader.Child("probe")) {
    ASSIGN_OR_RETURN(cell.probe, ProbeFromJson(*probe, origin + ": " + path + ".probe"));
  }
  for (const char* key : {"library", "model", "attention", "precision", "device", "ranks", "stage",
                          "reason", "message", "blame"}) {
    reader.Child(key);  // told by the fields above
  }
  RETURN_IF_ERROR(reader.Finish());
  return record;
}

}  // namespace

OrderedJson ToJson(const RunRecord& run) {
  std::map<std::string, int> counts;
  OrderedJson cells = OrderedJson::array();
  for (const CellRecord& record : run.cells) {
    cells.push_back(ToJson(record));
    if (record.role == CellRole::kSubject)
      ++counts[record.verdict ? std::string(Name(record.verdict->kind)) : "pending"];
  }
  return {{"schema", 1},      {"matrix", run.matrix},   {"finished", run.finished},
          {"counts", counts}, {"made_by", run.made_by}, {"cells", cells}};
}

absl::StatusOr<RunRecord> RunRecordFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  RunRecord run;
  reader.Int("schema", 1, 1, 1);
  run.matrix = reader.String("matrix");
  run.finished = reader.Bool("finished", false);
  reader.Child("counts");
  if (const Json* made_by = reader.Child("made_by")) run.made_by = *made_by;
  reader.ForEach("cells", [&](const Json& cell, const std::string& path) -> absl::Status {
    ASSIGN_OR_RETURN(CellRecord record, CellRecordFromJson(cell, origin, path));
    run.cells.push_back(std::move(record));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(reader.Finish());
  return run;
}

}  // namespace bkm
