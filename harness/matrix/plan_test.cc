// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;

Matrix TwoByTwo(const char* extra) {
  const std::string text =
      std::string(R"({"name": "m", "groups": [{"engine": {"kind": "verl-torchtitan",
      "subjects": ["git:verl@v1", "git:verl@v2"]}, "library": "pypi:torchtitan==0.3.0",
      "probe": {"attention": ["flex", "varlen"]}}])") +
      extra + "}";
  return *MatrixFromJson(*ParseJson(text, "m.json"), "m.json");
}

PlanEnvironment Environment() {
  return {.resolve = [](const SubjectSpec& spec) -> absl::StatusOr<Subject> {
            Subject subject{.spec = spec, .label = spec.revision};
            if (spec.source == SourceKind::kGit)
              subject.spec.revision = "commit-of-" + spec.revision;
            return subject;
          },
          .torch_of_runtime = [](const std::string&) -> absl::StatusOr<std::string> {
            return "2.13.0";
          }};
}

std::vector<std::string> Summaries(const std::vector<PlannedCell>& cells) {
  std::vector<std::string> lines;
  for (const PlannedCell& c : cells) {
    lines.push_back(c.cell.engine_label + " " + c.cell.probe.attention +
                    (c.included ? "" : " out: " + c.why));
  }
  return lines;
}

TEST(PlanTest, ExpandsTheProductInTheOrderOfTheFile) {
  const auto cells = *ExpandMatrix(TwoByTwo(""), {}, Environment());
  EXPECT_THAT(Summaries(cells), ElementsAre("v1 flex", "v1 varlen", "v2 flex", "v2 varlen"));
  EXPECT_EQ(cells[0].cell.engine_subject->revision, "commit-of-v1");
}

TEST(PlanTest, SaysWhyACellIsOut) {
  const auto cells = *ExpandMatrix(
      TwoByTwo(R"(, "exclude": [{"engine": "v1", "attention": "varlen", "why": "known"}])"),
      {*CellFilter::Parse("attention=varlen")}, Environment());
  EXPECT_THAT(Summaries(cells), ElementsAre("v1 flex out: not matched by --filter",
                                            "v1 varlen out: excluded by the matrix: known",
                                            "v2 flex out: not matched by --filter", "v2 varlen"));
}

TEST(PlanTest, TheSameCellTwiceIsOneCell) {
  Matrix matrix = TwoByTwo("");
  matrix.groups.push_back(matrix.groups[0]);
  EXPECT_EQ(ExpandMatrix(matrix, {}, Environment())->size(), 4u);
}

}  // namespace
}  // namespace bkm
