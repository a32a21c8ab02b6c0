// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_TESTING_SITE_H_
#define HARNESS_SITE_TESTING_SITE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/check.h"
#include "harness/site/site.h"

namespace bkm {

// A small site for tests, whose subjects wrote what must never run or close a tag.
inline constexpr char kHostile[] =
    "</code></td><script>planted=1</script><img src=x onerror=planted=1>\" onload=\"planted=1 "
    "\x1b[2J "
    "\xe2\x80\xae & 'q'";

inline CellRecord ASiteCell(const std::string& engine, const std::string& library,
                            const std::string& attention, Verdict verdict) {
  CellRecord record;
  record.cell.engine = "verl-torchtitan";
  record.cell.engine_subject = ParseSubjectSpec(engine).value();
  record.cell.library_subject = ParseSubjectSpec(library).value();
  record.cell.engine_label = record.cell.engine_subject->revision;
  record.cell.library_label = record.cell.library_subject->revision;
  record.cell.runtime = "cpu";
  record.cell.torch = "2.13.0";
  record.cell.probe.attention = attention;
  record.cell.probe.documents = {{4, 3}};
  record.engine_date = "2026-05-20";
  record.library_date = "2026-05-30";
  record.lock = std::string(64, 'b');
  record.id = CellId(record.cell);
  record.dir = CellDirectory(record.cell, record.id);
  record.cost.seconds = 7.5;
  record.verdict = std::move(verdict);
  return record;
}

inline std::vector<CellRecord> SiteCells() {
  const std::string newer = "pypi:torchtitan==0.3.0";
  const std::string older = "git:torchtitan@" + std::string(40, 'c');
  std::vector<CellRecord> cells = {
      ASiteCell("pypi:verl==0.9.1", newer, "flex",
                {.kind = VerdictKind::kBroken,
                 .stage = Stage::kImport,
                 .reason = "module-missing",
                 .message = kHostile,
                 .blame = {"interface"}}),
      ASiteCell("pypi:verl==0.9.1", older, "flex",
                {.kind = VerdictKind::kOk,
                 .stage = Stage::kGolden,
                 .message = "3 steps agree with the golden: log-probs within 0.6 times the floor"}),
      ASiteCell("pypi:verl==0.9.1", older, "sdpa",
                {.kind = VerdictKind::kRefused,
                 .stage = Stage::kConstruct,
                 .reason = "refused-option",
                 .message = "AssertionError: attn_type sdpa not supported (verl/x.py:12)",
                 .blame = {"engine"}}),
      ASiteCell("pypi:verl==0.9.1", older, "varlen",
                {.kind = VerdictKind::kWrong,
                 .stage = Stage::kMask,
                 .reason = "mask-leak",
                 .message = "documents see each other in every layer",
                 .blame = {"library"}})};
  CellRecord control = cells[1];
  control.role = CellRole::kControl;
  control.cell.engine = "torchtitan";
  control.cell.engine_subject.reset();
  control.cell.engine_label = "";
  control.id = CellId(control.cell);
  control.dir = CellDirectory(control.cell, control.id);
  cells.push_back(control);
  return cells;
}

// What a worker saw of the cell that stopped at import, and of one that ran through.
inline Json ABrokenObservation() {
  return {{"schema", 1},
          {"ending", {{"kind", "raised"}}},
          {"stages", Json::array({{{"stage", "import"}}})},
          {"exception",
           {{"type", "ModuleNotFoundError"},
            {"message", kHostile},
            {"frames", Json::array({{{"file", kHostile},
                                     {"line", 3},
                                     {"function", "<module>"},
                                     {"owner", "engine"},
                                     {"text", "import <b>torchtitan</b>"},
                                     {"statement", "import"}},
                                    {{"file", "torchtitan/__init__.py"},
                                     {"line", 9},
                                     {"function", "<module>"},
                                     {"owner", "library"},
                                     {"text", "import x"},
                                     {"statement", "import"}}})}}},
          {"warnings", Json::array({kHostile})}};
}

inline Json ARunObservation() {
  Json layers = Json::array(), kernels = Json::array(), stages = Json::array();
  for (int i = 0; i < 2; ++i) {
    layers.push_back({{"layer", kHostile}, {"class", kHostile}, {"module", "m"}});
    kernels.push_back({{"layer", i}, {"forward", {"flex_attention"}}, {"backward", {"B"}}});
  }
  for (const char* stage : {"import", "construct", "load", "backend", "mask", "forward", "step"})
    stages.push_back({{"stage", stage}, {"seconds", 0.25}});
  return {{"schema", 1},
          {"ending", {{"kind", "completed"}}},
          {"stages", stages},
          {"backend", {{"layers", layers}, {"kernels", kernels}}},
          {"steps",
           Json::array({{{"loss", 7.5},
                         {"grad_norm", 1.9},
                         {"learning_rate", 1e-4},
                         {"optimizer", {{"class", "AdamW"}, {"param_groups", Json::array()}}}}})}};
}

// Two ranks, of which one waited for the other.
inline Json ARankedObservation() {
  Json observation = ARunObservation();
  const Json collective = {{"op", kHostile},     {"reduce", "avg"}, {"ranks", 2},
                           {"dtype", kHostile},  {"calls", 3},      {"elements", 270},
                           {"stage", "backward"}};
  Json own = collective;
  own["stage"] = "witness";
  observation["ranks"] = Json::array();
  for (int rank = 0; rank < 2; ++rank) {
    observation["ranks"].push_back({{"rank", rank},
                                    {"stage", kHostile},
                                    {"ended", rank == 0 ? "waiting" : "raised"},
                                    {"waits", kHostile},
                                    {"exception", kHostile},
                                    {"data_rank", rank},
                                    {"data_ranks", 2},
                                    {"documents", {{{"first", 3 * rank}, {"count", 3 - rank}}}},
                                    {"collectives", {collective, own}}});
  }
  observation["ranks"][1]["collectives"][0]["calls"] = 5;
  observation["rank_differences"] = {
      {{"when", kHostile}, {"name", kHostile}, {"rank", 1}, {"largest", 0.5}}};
  observation["rank_ended"] = kHostile;
  return observation;
}

inline Json AJudgedEvidence() {
  return {{"checks",
           {{"backend", {{"outcome", "passed"}}},
            {"numbers",
             {{"outcome", "passed"},
              {"allowed_multiple", 4.0},
              {"loss", {{"error", 0.001}, {"floor", 0.002}, {"multiple", 0.5}, {"step", 0}}},
              {"gradient",
               {{"error", 0.4},
                {"floor", 0.05},
                {"multiple", 8},
                {"step", 1},
                {"tensor", kHostile}}}}}}}};
}

// A finished run in `folder`.
inline void WriteSiteRun(const std::filesystem::path& folder) {
  const RunDirectory directory(folder);
  RunRecord run{.matrix = "<i>bkm</i>", .finished = true, .cells = SiteCells()};
  for (CellRecord& cell : run.cells) {
    const bool stopped = cell.verdict->stage == Stage::kImport;
    const absl::Status written = directory.WriteObservation(
        cell, CellFacts::OfReport(stopped ? ABrokenObservation() : ARunObservation()));
    HARNESS_CHECK(written.ok()) << written;
    CellRecord judged = cell;
    if (!stopped) AdoptEvidence(AJudgedEvidence(), *judged.verdict);
    HARNESS_CHECK(directory.WriteVerdict(judged).ok());
  }
  HARNESS_CHECK(directory.WriteRun(run).ok());
}

inline PublishedRow ASiteRow(RowStatus status, const std::vector<CellRecord>& cells) {
  const CellRecord& first = cells[0];
  PublishedRow row;
  row.status = status;
  row.id = "row-" + PathPart(first.cell.library_label);
  row.engine = first.cell.engine;
  row.engine_version = {first.cell.engine_subject->ToString(), first.cell.engine_label,
                        first.engine_date};
  row.library = "torchtitan";
  row.library_from = row.library_to = {first.cell.library_subject->ToString(),
                                       first.cell.library_label, first.library_date};
  row.library_versions = {row.library_to};
  row.torch = "2.13.0";
  row.device = "cpu";
  row.measured = "2026-06-01";
  row.expires = "2026-08-30";
  for (const CellRecord& cell : cells) {
    PublishedCell& shown = row.cells.emplace_back();
    shown.id = cell.id;
    shown.probe = cell.cell.probe;
    shown.evidence = {
        .run = "run", .dir = cell.dir, .measured = "2026-06-01", .verdict = *cell.verdict};
  }
  return row;
}

// The table of WriteSiteRun's cells; the run lies in `folder`/run.
inline SiteTable ASiteTable(const std::filesystem::path& folder) {
  const std::vector<CellRecord> cells = SiteCells();
  PublishedTable table{.date = "2026-06-11", .rows = {ASiteRow(RowStatus::kFails, {cells[0]})}};
  table.rows.push_back(ASiteRow(RowStatus::kWorksExcept, {cells[1], cells[2], cells[3]}));
  for (const char* layout : {"dp_shard=2", "cp=2"}) {
    PublishedCell& cell = table.rows[1].cells.emplace_back(table.rows[1].cells[0]);
    cell.probe.layout = *ParseLayout(layout);
    if (layout[0] == 'c') cell.evidence.verdict.kind = VerdictKind::kBroken;
  }
  table.rows[1].horizon = {{"torchtitan", std::string(40, 'd'), "2026-06-05"}};
  table.rows[1].install = {"uv venv --python 3.11", "echo '<script>planted=1</script>'"};
  return {.table = table, .folder = folder, .today = "2026-09-01"};
}

inline NamedCommit ACommit(char digit) {
  return {"torchtitan", std::string(40, digit), "2026-06-04", kHostile, 3269};
}

inline Outcome AnOutcome(VerdictKind kind) {
  return {{.kind = kind, .stage = Stage::kConstruct, .reason = "raised", .message = kHostile}, "l"};
}

inline BisectReport ABisectReport() {
  const auto commit = [](char digit, VerdictKind kind) {
    return MeasuredCommit{ACommit(digit), AnOutcome(kind)};
  };
  return {.status = SearchStatus::kFound,
          .axis = AxisKind::kLibrary,
          .cell = kHostile,
          .bad_means = "anything but ok",
          .direction = Direction::kBroke,
          .older_end = commit('a', VerdictKind::kOk),
          .newer_end = commit('b', VerdictKind::kBroken),
          .culprit = commit('c', VerdictKind::kBroken),
          .parents = {commit('a', VerdictKind::kOk)},
          .made_by = MadeBy::kCommit,
          .effort = {302, 290, 14, 14, 171.5}};
}

inline TimelineReport ATimelineReport() {
  const auto stretch = [](VerdictKind kind, int commits) {
    return ReportedStretch{.signature = kHostile,
                           .verdict = AnOutcome(kind).verdict,
                           .first = {ACommit('d')},
                           .last = {ACommit('e')},
                           .commits = commits,
                           .measured = 2};
  };
  return {.cell = "x",
          .stretches = {stretch(VerdictKind::kOk, 100), stretch(VerdictKind::kBroken, 50)},
          .boundaries = {{.before = {ACommit('d')},
                          .culprit = TimelineCommit{ACommit('e')},
                          .same_runtime = false}},
          .resolution = 9,
          .effort = {150, 150, 12, 12, 60}};
}

inline PeelReport APeelReport() {
  return {
      .cell = kHostile,
      .newest = ACommit('f'),
      .reached = ACommit('d'),
      .why = kHostile,
      .last = {AnOutcome(VerdictKind::kOk).verdict},
      .culprits = {{.commit = ACommit('a'),
                    .failure = PeelFailure{AnOutcome(VerdictKind::kBroken).verdict},
                    .breaks = {{.grade = Grade::kImport, .asked = kHostile, .problem = kHostile}},
                    .taken_out_by = Removal::kRevert,
                    .taken_out_at = ACommit('d')}}};
}

inline std::vector<HistoryLog> SiteHistory() {
  return {{ABisectReport()}, {ATimelineReport()}, {APeelReport()}};
}

// A map of two commits by two, of which one pair works and one fails.
inline ApiMap ASiteMap() {
  const auto commit = [](char digit) {
    return MapCommit{std::string(40, digit), "2026-06-0" + std::string(1, digit), kHostile, ""};
  };
  ApiMap map{.engine_kind = "verl-torchtitan",
             .engine_source = "verl",
             .library_source = "torchtitan",
             .since = "2026-02-01",
             .attention = "flex",
             .model = "qwen3",
             .engines = {commit('1'), commit('2')},
             .libraries = {commit('3'), commit('4')}};
  map.plane = {{PairGrade::kNothing, PairGrade::kNothing},
               {PairGrade::kNothing, PairGrade::kNothing}};
  map.cells[{1, 0}] = {{1, 0}, "ok", "golden", "", kHostile};
  map.cells[{1, 1}] = {{1, 1}, "broken", "import", kHostile, "x"};
  return map;
}

// A site with every kind of page. The run is written to `folder`/run.
inline SiteContent ASite(const std::filesystem::path& folder) {
  WriteSiteRun(folder / "run");
  SiteContent content;
  HARNESS_CHECK(content.runs.Add(folder / "run").ok());
  content.table = ASiteTable(folder);
  content.history = SiteHistory();
  content.map = ASiteMap();
  content.detections = {{.column = "torchtitan, flex", .verdict = "ok"},
                        {.fault = kHostile,
                         .column = "torchtitan, flex",
                         .verdict = "wrong",
                         .stage = "mask",
                         .reason = "mask-leak",
                         .check = "mask",
                         .floors = 64,
                         .outcome = "as expected"},
                        {.fault = "b", .column = kHostile, .verdict = "ok", .outcome = "ESCAPED"}};
  const auto mutant = [](MutantOutcome outcome) {
    return Mutant{.mutation = {.file = kHostile, .line = 7, .function = kHostile},
                  .diff = kHostile,
                  .outcome = outcome};
  };
  content.mutated = {{.cell = kHostile,
                      .seed = 1,
                      .mutants = {mutant(MutantOutcome::kKilled), mutant(MutantOutcome::kSurvived),
                                  mutant(MutantOutcome::kCrashed)}}};
  return content;
}

// A cell's evidence with everything that is drawn: a leak into the document before, a token that is
// missing, an error above the limit and one that is not finite.
inline CellEvidence ADrawnEvidence() {
  CellEvidence evidence;
  evidence.documents = {4, 3};
  evidence.verdict = {.kind = VerdictKind::kWrong,
                      .stage = Stage::kMask,
                      .reason = "mask-leak",
                      .message = kHostile};
  AdoptEvidence(AJudgedEvidence(), evidence.verdict);
  evidence.raw = ARankedObservation();
  evidence.observation = ObservationFromJson(evidence.raw, "x").value();
  evidence.observation->reach =
      ObservedReach{.position = 1, .moved = {0, 1, 2}, .largest = {1, 1, 1}};
  Relation seen = RightRelation(PackedDocuments(evidence.documents), 0);
  seen.Set(4, 3, true);
  seen.Set(3, 0, false);
  evidence.attention = {{.layers = {0, 1}, .seen = seen}};
  evidence.errors = {{.step = 0,
                      .documents = {4, 3},
                      .tokens = {{0, 0.01}, {1, 0.5}, {2, std::nan("")}, {4, 0}, {5, 0.02}},
                      .floor_max = 0.05}};
  return evidence;
}

}  // namespace bkm

#endif  // HARNESS_SITE_TESTING_SITE_H_
