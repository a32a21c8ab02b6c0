// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_record.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

RunRecord ExampleRun() {
  CellRecord red;
  red.cell.engine = "verl-fsdp";
  red.cell.engine_subject = *ParseSubjectSpec("pypi:verl==0.9.1");
  red.cell.engine_label = "0.9.1";
  red.cell.runtime = "cpu";
  red.cell.torch = "2.13.0";
  red.cell.probe.attention = "sdpa";
  red.cell.probe.engine_options = {{"a", "1"}};
  red.id = CellId(red.cell);
  red.library_version = "5.10.2";
  red.lock = "abc";
  red.dir = "cells/x";
  red.verdict = Verdict{.kind = VerdictKind::kBroken,
                        .stage = Stage::kImport,
                        .reason = "module-missing",
                        .blame = {"interface"}};
  CellRecord pending = red;
  pending.cell.probe.attention = "eager";
  pending.id = CellId(pending.cell);
  pending.verdict.reset();
  return {.matrix = "m", .finished = false, .cells = {red, pending}};
}

TEST(CellRecordTest, RunJsonReadsBackAsItself) {
  const OrderedJson json = ToJson(ExampleRun());
  const RunRecord back = *RunRecordFromJson(*ParseJson(json.dump(), "run.json"), "run.json");
  EXPECT_EQ(ToJson(back), json);
}

// The order of keys and what is written where is published.
TEST(CellRecordTest, WritesItsKeysInTheirOrder) {
  RunRecord run = ExampleRun();
  run.cells[0].stability = Stability{.runs = 2, .verdicts = {{"ok", 2}}};
  run.cells[0].cell.plant = {"fault"};
  const OrderedJson json = ToJson(run);
  const auto keys = [](const OrderedJson& object) {
    std::string text;
    for (const auto& member : object.items()) text += member.key() + " ";
    return text;
  };
  EXPECT_EQ(keys(json), "schema matrix finished counts made_by cells ");
  EXPECT_EQ(keys(json["cells"][0]),
            "id role repeat repeat_of engine engine_subject engine_label engine_date library "
            "library_subject library_label library_date library_pinned runtime torch relax lock "
            "control_lock model attention precision device ranks probe plant verdict stage reason "
            "message blame stability inherited_from measured seconds dir ");
  EXPECT_EQ(json["cells"][0]["stability"].dump(),
            R"({"drift":"","flaky":false,"multiple":0.0,"runs":2,"verdicts":{"ok":2}})");
  EXPECT_EQ(keys(json["cells"][1]),
            "id role repeat repeat_of engine engine_subject engine_label engine_date library "
            "library_subject library_label library_date library_pinned runtime torch relax lock "
            "control_lock model attention precision device ranks probe verdict inherited_from "
            "measured seconds dir ");
}

TEST(CellRecordTest, KeysThatAreMissingInOlderRunsAreFine) {
  const Json json = {{"matrix", "m"},
                     {"cells",
                      {{{"id", "x"},
                        {"role", "subject"},
                        {"engine", "torchtitan"},
                        {"engine_label", ""},
                        {"library_label", "0.3.0"},
                        {"library_subject", "pypi:torchtitan==0.3.0"},
                        {"runtime", "cpu"},
                        {"torch", "2.13.0"},
                        {"dir", "cells/x"}}}}};
  const absl::StatusOr<RunRecord> run = RunRecordFromJson(json, "run.json");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->cells[0].cell.library_subject->revision, "0.3.0");
  EXPECT_EQ(run->cells[0].verdict, std::nullopt);
}

TEST(CellRecordTest, ErrorsNameTheCell) {
  const auto error_of = [](const char* key, const Json& value) {
    Json json = *ParseJson(ToJson(ExampleRun()).dump(), "run.json");
    json["cells"][1][key] = value;
    return std::string(RunRecordFromJson(json, "run.json").status().message());
  };
  EXPECT_EQ(error_of("role", "contrl"),
            "run.json: $.cells[1].role: unknown name 'contrl': did you mean 'control'?");
  EXPECT_EQ(error_of("stabilty", 1),
            "run.json: $.cells[1]: unknown key 'stabilty': did you mean 'stability'?");
  EXPECT_EQ(error_of("probe", {{"model", 1}}),
            "run.json: $.cells[1].probe: $.model: a string is needed here, not number");
}

TEST(CellRecordTest, CountsSubjectsByVerdictAndPendingOnes) {
  EXPECT_EQ(ToJson(ExampleRun())["counts"], (OrderedJson{{"broken", 1}, {"pending", 1}}));
}

TEST(CellRecordTest, LibraryOfTheRuntimeIsNamedByWhatWasResolved) {
  EXPECT_EQ(ToJson(ExampleRun())["cells"][0]["library_subject"], "pypi:transformers==5.10.2");
}

}  // namespace
}  // namespace bkm
