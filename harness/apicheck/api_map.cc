// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/api_map.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kMost = 1 << 30;  // rows and columns

Json CommitsToJson(const std::vector<MapCommit>& commits) {
  Json list = Json::array();
  for (const MapCommit& commit : commits) {
    list.push_back({{"commit", commit.commit},
                    {"date", commit.date},
                    {"title", commit.title},
                    {"release", commit.release}});
  }
  return list;
}

absl::Status ReadCommits(ObjectReader& reader, const char* key, std::vector<MapCommit>& commits) {
  const std::string origin = reader.origin();
  reader.ForEach(key, [&](const Json& item, const std::string& path) {
    ObjectReader one(item, origin, path);
    commits.push_back({.commit = one.String("commit"),
                       .date = one.String("date"),
                       .title = one.String("title", ""),
                       .release = one.String("release", "")});
    return one.Finish();
  });
  return absl::OkStatus();
}

// Equal neighbouring rows as one entry, each row as runs of equal grades: [grade, count], ...
Json PlaneToJson(const std::vector<std::vector<PairGrade>>& plane) {
  Json list = Json::array();
  for (size_t first = 0; first < plane.size();) {
    size_t next = first + 1;
    while (next < plane.size() && plane[next] == plane[first]) ++next;
    Json grades = Json::array();
    const std::vector<PairGrade>& row = plane[first];
    for (size_t column = 0; column < row.size();) {
      size_t end = column + 1;
      while (end < row.size() && row[end] == row[column]) ++end;
      grades.push_back(Json::array({std::string(Name(row[column])), end - column}));
      column = end;
    }
    list.push_back({{"rows", next - first}, {"grades", grades}});
    first = next;
  }
  return list;
}

std::optional<PairGrade> GradeFromName(const std::string& name) {
  for (int grade = 0; grade <= static_cast<int>(PairGrade::kImport); ++grade) {
    if (Name(static_cast<PairGrade>(grade)) == name) return static_cast<PairGrade>(grade);
  }
  return std::nullopt;
}

constexpr int64_t kMostCommits = 1'000'000;

absl::Status ReadPlane(const Json& item, std::vector<std::vector<PairGrade>>& plane) {
  std::vector<PairGrade> row;
  for (const Json& run : ListOf(item, "grades")) {
    const bool whole =
        run.is_array() && run.size() == 2 && run[0].is_string() && run[1].is_number_unsigned();
    const auto grade = whole ? GradeFromName(run[0].get<std::string>()) : std::nullopt;
    if (!grade || run[1].get<uint64_t>() > kMostCommits)
      return absl::InvalidArgumentError("a run of grades cannot be read");
    row.insert(row.end(), run[1].get<size_t>(), *grade);
  }
  const int64_t rows = WholeOf(item, "rows").value_or(0);
  if (rows < 0 || rows > kMostCommits || row.size() > kMostCommits)
    return absl::InvalidArgumentError("a run of rows cannot be read");
  plane.insert(plane.end(), static_cast<size_t>(rows), row);
  return absl::OkStatus();
}

std::set<int> Releases(const std::vector<MapCommit>& commits) {
  std::set<int> places;
  for (size_t i = 0; i < commits.size(); ++i) {
    if (!commits[i].release.empty()) places.insert(static_cast<int>(i));
  }
  return places;
}

Json AreaToJson(const Frontier::Area& area) {
  Json working = Json::array();
  for (const Frontier::Working& each : area.working)
    working.push_back(Json::array({each.first_column, each.last_column}));
  return {{"rows", Json::array({area.first_row, area.last_row})}, {"working", working}};
}

}  // namespace

RunOutcome MapCell::outcome() const {
  if (verdict == "ok") return RunOutcome::kWorks;
  if (verdict == "broken" || verdict == "wrong" || verdict == "refused") return RunOutcome::kFails;
  return RunOutcome::kSaysNothing;
}

Frontier ApiMap::MakeFrontier() const {
  FrontierQuestions questions{
      .rows = Releases(engines), .columns = Releases(libraries), .resolution = resolution};
  Frontier frontier(plane, std::move(questions));
  for (const auto& [point, cell] : cells) frontier.Tell(point, cell.outcome());
  return frontier;
}

std::vector<WorkingBlock> ApiMap::Working() const {
  std::vector<WorkingBlock> blocks;
  const Frontier frontier = MakeFrontier();
  for (const Band& band : frontier.bands()) {
    for (const Frontier::Area& area : frontier.AreasOf(band)) {
      for (const Frontier::Working& working : area.working)
        blocks.push_back(
            {area.first_row, area.last_row, working.first_column, working.last_column});
    }
  }
  return blocks;
}

Json ToJson(const ApiMap& map) {
  Json cells = Json::array();
  for (const auto& [point, cell] : map.cells) {
    cells.push_back({{"row", point.row},
                     {"column", point.column},
                     {"verdict", cell.verdict},
                     {"stage", cell.stage},
                     {"reason", cell.reason},
                     {"id", cell.id}});
  }
  Json bands = Json::array();
  const Frontier frontier = map.MakeFrontier();
  for (const Band& band : frontier.bands()) {
    Json areas = Json::array();
    for (const Frontier::Area& area : frontier.AreasOf(band)) areas.push_back(AreaToJson(area));
    bands.push_back({{"rows", Json::array({band.first_row, band.last_row})},
                     {"columns", Json::array({band.first_column, band.last_column})},
                     {"working", areas[0]["working"]},  // of its newest engine
                     {"areas", areas}});
  }
  return {{"schema", 1},
          {"engine", map.engine_kind},
          {"engine_source", map.engine_source},
          {"library_source", map.library_source},
          {"since", map.since},
          {"attention", map.attention},
          {"model", map.model},
          {"resolution", map.resolution},
          {"finished", map.finished},
          {"engines", CommitsToJson(map.engines)},
          {"libraries", CommitsToJson(map.libraries)},
          {"static", PlaneToJson(map.plane)},
          {"bands", bands},
          {"cells", cells}};
}

absl::StatusOr<ApiMap> ApiMapFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  reader.Int("schema", 1, 1, 1);
  reader.Child("bands");  // follows from the rest
  ApiMap map{.engine_kind = reader.String("engine"),
             .engine_source = reader.String("engine_source"),
             .library_source = reader.String("library_source"),
             .since = reader.String("since"),
             .attention = reader.String("attention"),
             .model = reader.String("model"),
             .resolution = static_cast<int>(reader.Int("resolution", 0, 0, kMost)),
             .finished = reader.Bool("finished", false)};
  RETURN_IF_ERROR(ReadCommits(reader, "engines", map.engines));
  RETURN_IF_ERROR(ReadCommits(reader, "libraries", map.libraries));
  reader.ForEach("static",
                 [&](const Json& item, const std::string&) { return ReadPlane(item, map.plane); });
  reader.ForEach("cells", [&](const Json& item, const std::string& path) {
    ObjectReader one(item, origin, path);
    MapCell cell{.point = {static_cast<int>(one.Int("row", 0, 0, kMost)),
                           static_cast<int>(one.Int("column", 0, 0, kMost))},
                 .verdict = one.String("verdict"),
                 .stage = one.String("stage", ""),
                 .reason = one.String("reason", ""),
                 .id = one.String("id", "")};
    map.cells.emplace(cell.point, cell);
    return one.Finish();
  });
  RETURN_IF_ERROR(reader.Finish());
  if (map.plane.size() != map.engines.size()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": the plane has ", map.plane.size(),
                                                   " rows and there are ", map.engines.size(),
                                                   " engines: make the map again"));
  }
  for (const std::vector<PairGrade>& row : map.plane) {
    if (row.size() == map.libraries.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(origin, ": a row of the plane has ", row.size(),
                                                   " pairs and there are ", map.libraries.size(),
                                                   " libraries: make the map again"));
  }
  const PlanePoint end{static_cast<int>(map.engines.size()),
                       static_cast<int>(map.libraries.size())};
  for (const auto& [point, cell] : map.cells) {
    if (point.row < end.row && point.column < end.column) continue;
    return absl::InvalidArgumentError(absl::StrCat(origin, ": the cell ", cell.id,
                                                   " lies outside of the plane: make the map "
                                                   "again"));
  }
  return map;
}

absl::StatusOr<ApiMap> ReadApiMap(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  return ApiMapFromJson(json, file.string());
}

}  // namespace bkm
