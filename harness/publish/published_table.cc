// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/published_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/model/dimension.h"
#include "harness/model/sandbox_level.h"
#include "harness/publish/coverage.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 4> kStatuses = {"works", "works-except", "fails",
                                                        "unknown"};

}  // namespace

absl::string_view Name(RowStatus status) { return kStatuses[static_cast<size_t>(status)]; }

std::optional<RowStatus> RowStatusFromName(absl::string_view name) {
  const auto it = std::find(kStatuses.begin(), kStatuses.end(), name);
  if (it == kStatuses.end()) return std::nullopt;
  return static_cast<RowStatus>(it - kStatuses.begin());
}

bool IsOk(const PublishedCell& cell) {
  return cell.evidence.verdict.kind == VerdictKind::kOk && !cell.flaky;
}

bool HasEngine(const PublishedRow& row) { return !row.engine_version.subject.empty(); }

bool Works(const PublishedRow& row) {
  return row.status == RowStatus::kWorks || row.status == RowStatus::kWorksExcept;
}

std::string HorizonText(const PublishedRow& row) {
  return absl::StrJoin(row.horizon, ", ", [](std::string* out, const SourceHead& head) {
    absl::StrAppend(out, head.name, " ", head.date);
  });
}

bool IsExpired(const PublishedRow& row, absl::string_view day) {
  return !row.expires.empty() && absl::string_view(row.expires) < day;
}

void Describe(Fields& fields, PublishedVersion& version) {
  fields.Field("subject", version.subject);
  fields.Field("label", version.label);
  fields.Field("date", version.date);
}

void Describe(Fields& fields, SourceHead& head) {
  fields.Field("name", head.name);
  fields.Field("commit", head.commit);
  fields.Field("date", head.date);
}

void Describe(Fields& fields, PublishedRun& run) {
  fields.Field("dir", run.dir);
  fields.Field("matrix", run.matrix);
  fields.Field("finished", run.finished, Presence::kOptional);
  fields.Field("cell_code", run.cell_code);
  fields.Int("cells", run.cells, 0, 1 << 30, Presence::kOptional);
}

void Describe(Fields& fields, Evidence& evidence) {
  DescribeOutcome(fields, evidence.verdict);
  fields.Field("measured", evidence.measured);
  DescribeCost(fields, evidence.cost);
  fields.Field("run", evidence.run);
  fields.Field("dir", evidence.dir);
}

void Describe(Fields& fields, PublishedCell& cell) {
  fields.Field("id", cell.id);
  if (fields.reading()) {
    absl::StatusOr<Probe> probe = ProbeOfId(cell.id);
    probe.ok() ? void(cell.probe = *std::move(probe))
               : fields.Fail("id", std::string(probe.status().message()));
  }
  fields.Field("library", cell.library);
  fields.Derived("model", cell.probe.model);
  fields.Derived("attention", cell.probe.attention);
  fields.Derived("precision", cell.probe.precision);
  // Further settings: "input=padded, micro_batches=2"; empty for defaults.
  fields.Derived("options", OptionsText(cell.probe));
  fields.Field("flaky", cell.flaky, Presence::kOptional);
  fields.Field("evidence", cell.evidence);
  fields.Field("inherited_from", cell.inherited_from, Presence::kOptional);
  fields.Field("control", cell.control, Presence::kOptional);
  fields.Field("contradicted_by", cell.contradicted_by, Presence::kOptional);
  fields.Field("key", cell.key, Presence::kOmitted);
}

void Describe(Fields& fields, PublishedRow& row) {
  fields.Field("id", row.id);
  fields.Field("engine", row.engine);
  fields.Field("engine_version", row.engine_version);
  fields.Field("library", row.library);
  fields.Field("library_from", row.library_from);
  fields.Field("library_to", row.library_to);
  fields.Field("library_versions", row.library_versions, Presence::kOptional);
  fields.Field("runtime", row.runtime);
  fields.Field("python", row.python);
  fields.Field("torch", row.torch);
  fields.Field("lock", row.lock);
  fields.Field("relax", row.relax, Presence::kOptional);
  fields.Field("device", row.device);
  fields.Name("status", row.status, kStatuses);
  fields.Field("measured", row.measured);
  fields.Field("expires", row.expires);
  fields.Field("install", row.install, Presence::kOptional);
  fields.Field("pylock", row.pylock);
  if (fields.reading() && row.pylock.find('/') != std::string::npos)
    fields.Fail("pylock", "the name of a file beside the table is needed here, not a path");
  fields.OneOf("sandbox", row.sandbox, RecordedLevelNames(), Presence::kOmitted);
  fields.Field("measure_again", row.measure_again, Presence::kOmitted);
  fields.Field("horizon", row.horizon, Presence::kOmitted);
  const Coverage coverage = fields.reading() ? Coverage() : CoverageOf(row);
  fields.Derived("ok_with", coverage.ok);
  fields.Derived("not_ok_with", coverage.not_ok);
  fields.Derived("not_tested", coverage.not_tested);
  fields.Field("cells", row.cells, Presence::kOptional);
}

void Describe(Fields& fields, PublishedTable& table) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
  fields.Field("date", table.date);
  fields.Field("runs", table.runs, Presence::kOptional);
  fields.Field("rows", table.rows, Presence::kOptional);
}

OrderedJson ToJson(const PublishedTable& table) { return WriteFields(table); }

absl::StatusOr<PublishedTable> PublishedTableFromJson(const Json& json, const std::string& origin) {
  if (json.is_object() && !json.contains("schema")) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": $.schema: it is missing: is this a published table?"));
  }
  return ReadFields<PublishedTable>(json, origin);
}

std::filesystem::path DefaultTable(const std::filesystem::path& root) {
  for (const char* table : {"published/table.json", "golden/table/table.json"}) {
    std::error_code error;
    if (std::filesystem::exists(root / table, error)) return root / table;
  }
  return {};
}

absl::StatusOr<TableOnDisk> ReadPublishedTable(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, error) ? path / "table.json" : path;
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  TableOnDisk found{.folder = std::filesystem::absolute(file).parent_path()};
  ASSIGN_OR_RETURN(found.table, PublishedTableFromJson(json, file.string()));
  return found;
}

}  // namespace bkm
