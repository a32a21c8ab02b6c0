// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/published_table.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr std::array<std::pair<RowStatus, const char*>, 4> kStatuses = {
    {{RowStatus::kWorks, "works"},
     {RowStatus::kWorksExcept, "works-except"},
     {RowStatus::kFails, "fails"},
     {RowStatus::kUnknown, "unknown"}}};

OrderedJson ToJson(const PublishedVersion& version) {
  return {{"subject", version.subject}, {"label", version.label}, {"date", version.date}};
}

PublishedVersion VersionFrom(ObjectReader& parent, const char* key) {
  static const Json& nothing = *new Json(Json::object());
  const Json* json = parent.Child(key);
  ObjectReader reader(json ? *json : nothing, parent.origin(), parent.PathOf(key));
  PublishedVersion version{reader.String("subject"), reader.String("label"), reader.String("date")};
  parent.Keep(reader.Finish());
  return version;
}

OrderedJson ToJson(const Evidence& evidence) {
  const Verdict& verdict = evidence.verdict;
  return {{"verdict", std::string(Name(verdict.kind))},
          {"stage", std::string(Name(verdict.stage))},
          {"reason", verdict.reason},
          {"message", verdict.message},
          {"blame", verdict.blame},
          {"measured", evidence.measured},
          {"seconds", evidence.seconds},
          {"run", evidence.run},
          {"dir", evidence.dir}};
}

absl::StatusOr<Evidence> EvidenceFromJson(const Json& json, const std::string& origin,
                                          const std::string& path) {
  ObjectReader reader(json, origin, path);
  Evidence evidence;
  Json verdict = Json::object();
  for (const char* key : {"verdict", "stage", "reason", "message", "blame"}) {
    if (const Json* value = reader.Child(key)) verdict[key] = *value;
  }
  evidence.measured = reader.String("measured");
  evidence.seconds = reader.Number("seconds", 0);
  evidence.run = reader.String("run");
  evidence.dir = reader.String("dir");
  RETURN_IF_ERROR(reader.Finish());
  ASSIGN_OR_RETURN(evidence.verdict, VerdictFromJson(verdict, absl::StrCat(origin, ": ", path)));
  return evidence;
}

OrderedJson ToJson(const PublishedCell& cell) {
  OrderedJson contradicted = OrderedJson::array();
  for (const Evidence& older : cell.contradicted_by) contradicted.push_back(ToJson(older));
  OrderedJson json = {{"id", cell.id},
                      {"library", cell.library},
                      {"model", cell.model},
                      {"attention", cell.attention},
                      {"precision", cell.precision},
                      {"options", cell.options},
                      {"flaky", cell.flaky},
                      {"evidence", ToJson(cell.evidence)},
                      {"inherited_from", nullptr},
                      {"control", nullptr},
                      {"contradicted_by", contradicted}};
  if (!cell.inherited_from.empty()) json["inherited_from"] = cell.inherited_from;
  if (cell.control) json["control"] = ToJson(*cell.control);
  return json;
}

absl::StatusOr<PublishedCell> CellFromJson(const Json& json, const std::string& origin,
                                           const std::string& path) {
  ObjectReader reader(json, origin, path);
  PublishedCell cell;
  cell.id = reader.String("id");
  cell.library = reader.String("library");
  cell.model = reader.String("model");
  cell.attention = reader.String("attention");
  cell.precision = reader.String("precision");
  cell.options = reader.String("options");
  cell.flaky = reader.Bool("flaky", false);
  const Json* evidence = reader.Child("evidence");
  if (!evidence) reader.Fail("evidence", "it is missing");
  if (const Json* from = reader.Child("inherited_from"); from && !from->is_null())
    cell.inherited_from = reader.String("inherited_from");
  const Json* control = reader.Child("control");
  reader.ForEach("contradicted_by", [&](const Json& item, const std::string& at) -> absl::Status {
    ASSIGN_OR_RETURN(cell.contradicted_by.emplace_back(), EvidenceFromJson(item, origin, at));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(reader.Finish());
  ASSIGN_OR_RETURN(cell.evidence, EvidenceFromJson(*evidence, origin, path + ".evidence"));
  if (control && !control->is_null()) {
    ASSIGN_OR_RETURN(cell.control, EvidenceFromJson(*control, origin, path + ".control"));
  }
  return cell;
}

OrderedJson ToJson(const PublishedRow& row) {
  OrderedJson versions = OrderedJson::array(), cells = OrderedJson::array();
  for (const PublishedVersion& version : row.library_versions) versions.push_back(ToJson(version));
  for (const PublishedCell& cell : row.cells) cells.push_back(ToJson(cell));
  return {{"id", row.id},
          {"engine", row.engine},
          {"engine_version", ToJson(row.engine_version)},
          {"library", row.library},
          {"library_from", ToJson(row.library_from)},
          {"library_to", ToJson(row.library_to)},
          {"library_versions", versions},
          {"runtime", row.runtime},
          {"python", row.python},
          {"torch", row.torch},
          {"lock", row.lock},
          {"relax", row.relax},
          {"device", row.device},
          {"status", std::string(Name(row.status))},
          {"measured", row.measured},
          {"expires", row.expires},
          {"install", row.install},
          {"pylock", row.pylock},
          {"cells", cells}};
}

absl::StatusOr<PublishedRow> RowFromJson(const Json& json, const std::string& origin,
                                         const std::string& path) {
  ObjectReader reader(json, origin, path);
  PublishedRow row;
  row.id = reader.String("id");
  row.engine = reader.String("engine");
  row.engine_version = VersionFrom(reader, "engine_version");
  row.library = reader.String("library");
  row.library_from = VersionFrom(reader, "library_from");
  row.library_to = VersionFrom(reader, "library_to");
  reader.ForEach("library_versions", [&](const Json& item, const std::string& at) {
    ObjectReader version(item, origin, at);
    row.library_versions.push_back(
        {version.String("subject"), version.String("label"), version.String("date")});
    return version.Finish();
  });
  row.runtime = reader.String("runtime");
  row.python = reader.String("python");
  row.torch = reader.String("torch");
  row.lock = reader.String("lock");
  row.relax = reader.Strings("relax");
  row.device = reader.String("device");
  std::vector<std::string> statuses;
  for (const auto& [status, name] : kStatuses) statuses.push_back(name);
  row.status = RowStatusFromName(reader.OneOf("status", statuses)).value_or(RowStatus::kUnknown);
  row.measured = reader.String("measured");
  row.expires = reader.String("expires");
  row.install = reader.Strings("install");
  row.pylock = reader.String("pylock");
  reader.ForEach("cells", [&](const Json& item, const std::string& at) -> absl::Status {
    ASSIGN_OR_RETURN(row.cells.emplace_back(), CellFromJson(item, origin, at));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(reader.Finish());
  return row;
}

}  // namespace

absl::string_view Name(RowStatus status) {
  for (const auto& [known, name] : kStatuses) {
    if (known == status) return name;
  }
  return "";
}

std::optional<RowStatus> RowStatusFromName(absl::string_view name) {
  for (const auto& [status, known] : kStatuses) {
    if (name == known) return status;
  }
  return std::nullopt;
}

bool Works(const PublishedRow& row) {
  return row.status == RowStatus::kWorks || row.status == RowStatus::kWorksExcept;
}

bool IsExpired(const PublishedRow& row, absl::string_view day) {
  return !row.expires.empty() && absl::string_view(row.expires) < day;
}

OrderedJson ToJson(const PublishedTable& table) {
  OrderedJson runs = OrderedJson::array(), rows = OrderedJson::array();
  for (const PublishedRun& run : table.runs) {
    runs.push_back({{"dir", run.dir},
                    {"matrix", run.matrix},
                    {"finished", run.finished},
                    {"cell_code", run.cell_code},
                    {"cells", run.cells}});
  }
  for (const PublishedRow& row : table.rows) rows.push_back(ToJson(row));
  return {{"schema", 1}, {"date", table.date}, {"runs", runs}, {"rows", rows}};
}

absl::StatusOr<PublishedTable> PublishedTableFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  PublishedTable table;
  if (!reader.Has("schema")) reader.Fail("schema", "it is missing: is this a published table?");
  reader.Int("schema", 1, 1, 1);
  table.date = reader.String("date");
  reader.ForEach("runs", [&](const Json& item, const std::string& path) {
    ObjectReader run(item, origin, path);
    table.runs.push_back({.dir = run.String("dir"),
                          .matrix = run.String("matrix"),
                          .finished = run.Bool("finished", true),
                          .cell_code = run.String("cell_code"),
                          .cells = static_cast<int>(run.Int("cells", 0, 0, 1 << 30))});
    return run.Finish();
  });
  reader.ForEach("rows", [&](const Json& item, const std::string& path) -> absl::Status {
    ASSIGN_OR_RETURN(table.rows.emplace_back(), RowFromJson(item, origin, path));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(reader.Finish());
  return table;
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
