// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_record.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

RunRecord Example() {
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
  const OrderedJson json = ToJson(Example());
  const RunRecord back = *RunRecordFromJson(*ParseJson(json.dump(), "run.json"), "run.json");
  EXPECT_EQ(ToJson(back), json);
}

TEST(CellRecordTest, CountsSubjectsByVerdictAndPendingOnes) {
  EXPECT_EQ(ToJson(Example())["counts"], (OrderedJson{{"broken", 1}, {"pending", 1}}));
}

TEST(CellRecordTest, LibraryOfTheRuntimeIsNamedByWhatWasResolved) {
  EXPECT_EQ(ToJson(Example())["cells"][0]["library_subject"], "pypi:transformers==5.10.2");
}

}  // namespace
}  // namespace bkm
