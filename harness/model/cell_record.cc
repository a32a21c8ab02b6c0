// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_record.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "harness/base/fields.h"
#include "harness/model/engine_kind.h"
#include "harness/model/sandbox_level.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 4> kRoles = {"subject", "control", "repeat", "twin"};

void DescribeSubject(Fields& fields, const char* key, std::optional<SubjectSpec>& subject) {
  std::optional<std::string> text;
  if (subject) text = subject->ToString();
  fields.Field(key, text, Presence::kOptional);
  if (!fields.reading() || !text) return;
  const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(*text);
  fields.Keep(spec.status());
  if (spec.ok()) subject = *spec;
}

// A library that lives in the runtime is written as what the runtime resolved to.
void DescribeLibrary(Fields& fields, CellRecord& record) {
  Cell& cell = record.cell;
  const EngineKind* kind = FindEngineKind(cell.engine);
  const std::string source = kind ? kind->library_source : "";
  fields.Derived("library", source);
  std::optional<SubjectSpec> subject = cell.library_subject;
  if (!subject && !record.library_version.empty() && kind)
    subject = SubjectSpec{SourceKind::kPypi, source, record.library_version};
  DescribeSubject(fields, "library_subject", subject);
  std::string label = cell.library_label.empty() ? record.library_version : cell.library_label;
  fields.Field("library_label", label);
  fields.Field("library_date", record.library_date, Presence::kOptional);
  bool pinned = fields.reading() || cell.library_subject;
  fields.Field("library_pinned", pinned, Presence::kOptional);
  if (!fields.reading()) return;
  cell.library_label = label;
  if (pinned && subject)
    cell.library_subject = subject;
  else
    record.library_version = label;
}

void DescribeProbe(Fields& fields, Probe& probe) {
  fields.Derived("model", probe.model);
  fields.Derived("attention", probe.attention);
  fields.Derived("precision", probe.precision);
  fields.Derived("device", probe.device);
  fields.Derived("ranks", probe.layout.ranks());
  Json json = fields.reading() ? Json() : ToJson(probe);
  fields.Field("probe", json, Presence::kOptional);
  if (!fields.reading() || json.is_null()) return;
  const absl::StatusOr<Probe> read = ProbeFromJson(json, fields.PlaceOf("probe"));
  fields.Keep(read.status());
  if (read.ok()) probe = *read;
}

// {"verdict": null} for a cell that is not measured yet.
void DescribeVerdict(Fields& fields, std::optional<Verdict>& verdict) {
  if (fields.reading() ? fields.IsNull("verdict") : !verdict) {
    fields.Derived("verdict", Json());
    for (const char* key : {"stage", "reason", "message", "blame"}) fields.Ignore(key);
    return;
  }
  if (fields.reading()) verdict.emplace();
  DescribeOutcome(fields, *verdict);
}

std::map<std::string, int> CountSubjects(const RunRecord& run) {
  std::map<std::string, int> counts;
  for (const CellRecord& record : run.cells) {
    if (record.role == CellRole::kSubject)
      ++counts[record.verdict ? std::string(Name(record.verdict->kind)) : "pending"];
  }
  return counts;
}

}  // namespace

void Describe(Fields& fields, Stability& stability) {
  fields.Field("drift", stability.drift, Presence::kOptional);
  fields.Derived("flaky", stability.flaky());
  fields.Field("multiple", stability.multiple, Presence::kOptional);
  fields.Int("runs", stability.runs, 0, 1 << 20, Presence::kOptional);
  fields.Field("verdicts", stability.verdicts, Presence::kOptional);
}

void Describe(Fields& fields, CellRecord& record) {
  Cell& cell = record.cell;
  fields.Field("id", record.id);
  fields.Name("role", record.role, kRoles);
  fields.Int("repeat", cell.repeat, 1, 1 << 20, Presence::kOptional);
  fields.Field("repeat_of", record.repeat_of, Presence::kOptional);
  fields.OneOf("engine", cell.engine, EngineKindNames());
  DescribeSubject(fields, "engine_subject", cell.engine_subject);
  fields.Field("engine_label", cell.engine_label);
  fields.Field("engine_date", record.engine_date, Presence::kOptional);
  DescribeLibrary(fields, record);
  fields.Field("runtime", cell.runtime);
  fields.Field("torch", cell.torch);
  fields.Field("relax", cell.relax, Presence::kOptional);
  fields.Field("lock", record.lock, Presence::kOptional);
  fields.Field("control_lock", cell.lock, Presence::kOptional);
  DescribeProbe(fields, cell.probe);
  fields.Field("plant", cell.plant, Presence::kOmitted);
  DescribeVerdict(fields, record.verdict);
  fields.Field("stability", record.stability, Presence::kOmitted);
  fields.Field("inherited_from", record.inherited_from, Presence::kOptional);
  fields.Field("measured", record.measured, Presence::kOptional);
  DescribeCost(fields, record.cost);
  fields.Field("dir", record.dir);
}

void Describe(Fields& fields, RunRecord& run) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1, Presence::kOptional);
  fields.Field("matrix", run.matrix);
  fields.Field("finished", run.finished, Presence::kOptional);
  fields.OneOf("sandbox", run.sandbox, SandboxLevelNames(), Presence::kOmitted);
  fields.Derived("counts", CountSubjects(run));
  fields.Field("made_by", run.made_by, Presence::kOptional);
  fields.Field("cells", run.cells, Presence::kOptional);
}

OrderedJson ToJson(const RunRecord& run) { return WriteFields(run); }

absl::StatusOr<RunRecord> RunRecordFromJson(const Json& json, const std::string& origin) {
  return ReadFields<RunRecord>(json, origin);
}

}  // namespace bkm
