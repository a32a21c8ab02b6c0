// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Every format of a table against its own schema or parser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/shape_check.h"
#include "harness/base/subprocess.h"
#include "harness/publish/badges.h"
#include "harness/publish/table_csv.h"
#include "harness/publish/table_junit.h"
#include "harness/publish/table_markdown.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// What xmllint says of `xml` by junit.xsd; empty when it is valid.
std::string Complaints(const std::string& xml) {
  const absl::StatusOr<ProcessResult> result = RunCommand(
      {.argv = {"xmllint", "--noout", "--schema", "harness/publish/junit.xsd", "-"}, .input = xml});
  if (!result.ok()) return std::string(result.status().message());
  return result->ok() ? "" : result->err;
}

TEST(JunitTest, IsValidWhateverSubjectsWrite) {
  const std::string xml = TableJunit(ATable());
  EXPECT_EQ(Complaints(xml), "") << xml;
}

TEST(JunitTest, TheSchemaRefusesWhatIsNoJunit) {
  EXPECT_THAT(Complaints("<testsuites name='x' tests='1'/>"), HasSubstr("failures"));
}

TEST(JunitTest, RedIsAFailureAndNothingElseIs) {
  PublishedTable table = ATable();
  table.rows = {AGoodRow()};
  table.rows[0].cells.push_back(ACell("varlen", {.kind = VerdictKind::kSpurious,
                                                 .stage = Stage::kStep,
                                                 .reason = "killed",
                                                 .message = "killed from outside"}));
  table.rows[0].cells.push_back(ACell("eager", {.kind = VerdictKind::kUnsupported,
                                                .stage = Stage::kBackend,
                                                .reason = "device-missing",
                                                .message = "no GPU"}));
  const std::string row = table.rows[0].id;
  EXPECT_EQ(TableJunit(table),
            absl::StrCat(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<testsuites name=\"bkm\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" "
                "time=\"10.0\">\n"
                "  <testsuite name=\"",
                row,
                "\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"10.0\" "
                "timestamp=\"2026-06-01T00:00:00\">\n"
                "    <testcase classname=\"",
                row,
                "\" name=\"qwen3 flex bf16 (pypi:torchtitan==0.3.0)\" "
                "time=\"2.5\"/>\n    <testcase classname=\"",
                row,
                "\" name=\"qwen3 sdpa bf16 (pypi:torchtitan==0.3.0)\" time=\"2.5\">\n"
                "      <failure type=\"refused\" message=\"refused at construct, refused-option: "
                "ValueError: &lt;b&gt;sdpa&lt;/b&gt; | &quot;not&quot; supported &amp; "
                "=never\xEF\xBF\xBD\">engine=verl-torchtitan@git:verl@v0.8.0,attention=sdpa\n"
                "../runs/bkm/cells/a-sdpa</failure>\n    </testcase>\n    <testcase classname=\"",
                row,
                "\" name=\"qwen3 varlen bf16 (pypi:torchtitan==0.3.0)\" time=\"2.5\">\n"
                "      <error type=\"spurious\" message=\"spurious at step, killed: killed from "
                "outside\">engine=verl-torchtitan@git:verl@v0.8.0,attention=varlen\n"
                "../runs/bkm/cells/a-varlen</error>\n    </testcase>\n    <testcase classname=\"",
                row,
                "\" name=\"qwen3 eager bf16 (pypi:torchtitan==0.3.0)\" time=\"2.5\">\n"
                "      <skipped message=\"no GPU\"/>\n    </testcase>\n"
                "  </testsuite>\n</testsuites>\n"));
  EXPECT_EQ(Complaints(TableJunit(table)), "");
}

TEST(CsvTest, HasALinePerCellWithAsManyFieldsAsItsHead) {
  PublishedTable table = ATable();
  table.rows = {AGoodRow()};
  table.rows[0].cells.resize(1);
  const std::vector<std::string> lines = absl::StrSplit(TableCsv(table), "\r\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(absl::StrSplit(lines[0], ',').operator std::vector<std::string>().size(), 30u);
  EXPECT_EQ(lines[1],
            absl::StrCat("verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0,works-except,"
                         "verl-torchtitan,v0.8.0,git:verl@",
                         std::string(40, 'a'),
                         ",torchtitan,0.3.0,0.3.0,pypi:torchtitan==0.3.0,cpu,3.11,2.13.0,",
                         std::string(64, 'b'),
                         ",cpu,qwen3,flex,bf16,,ok,golden,,,,false,2026-06-01,2026-08-30,"
                         "../runs/bkm,cells/a-flex,pylock.verl-torchtitan-v0-8-0-torchtitan-0-3-0-"
                         "cpu-torch-2-13-0.toml,full"));
}

TEST(MarkdownTest, RowSaysItsSandboxWhereItIsWeakerOrNotRecorded) {
  PublishedTable table = ATable();
  EXPECT_THAT(TableMarkdown(table, EvidenceLinks::kNone), Not(HasSubstr("sandbox")));
  table.rows[0].sandbox = "weak";
  table.rows[1].sandbox = "";
  const std::string text = TableMarkdown(table, EvidenceLinks::kNone);
  EXPECT_THAT(text, HasSubstr("**fails** (sandbox: weak)"));
  EXPECT_THAT(text, HasSubstr("The sandbox level of 1 of 2 rows was not recorded."));
}

TEST(BadgesTest, KeepToTheEndpointsSchema) {
  for (const auto& [name, badge] : Badges(ATable())) {
    const Json json = Json::parse(badge.dump());
    EXPECT_TRUE(SchemaAccepts("harness/publish/badge.schema.json", json)) << name;
  }
}

std::map<std::string, std::string> BadgeTexts(const PublishedTable& table) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, badge] : Badges(table))
    texts[name] =
        absl::StrCat(badge["label"].get<std::string>(), ": ", badge["message"].get<std::string>(),
                     ", ", badge["color"].get<std::string>());
  return texts;
}

TEST(BadgesTest, TheEnginesIsItsNewestPairThatWorks) {
  EXPECT_THAT(BadgeTexts(ATable()),
              ElementsAre(Pair("verl-torchtitan-0-9-1-torchtitan-0-3-0-cpu-torch-2-13-0.json",
                               "verl-torchtitan 0.9.1 x torchtitan 0.3.0: fails, red"),
                          Pair("verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.json",
                               "verl-torchtitan v0.8.0 x torchtitan 0.3.0: works-except, yellow"),
                          Pair("verl-torchtitan.json",
                               "verl-torchtitan: v0.8.0 x torchtitan 0.3.0, yellow")));
}

TEST(BadgesTest, ExpiredEvidenceShinesForNobody) {
  PublishedTable table = ATable();
  table.date = "2027-01-01";
  EXPECT_EQ(BadgeTexts(table)["verl-torchtitan.json"], "verl-torchtitan: unknown, lightgrey");
}

// As bkm wrote it before rows had a horizon and a command.
PublishedTable AnOlderTable() {
  PublishedTable table = ATable();
  for (PublishedRow& row : table.rows) row.horizon.clear(), row.measure_again.clear();
  return table;
}

TEST(MarkdownTest, TellsEveryVerdictItsEvidenceItsReasonAndHowToInstall) {
  EXPECT_EQ(TableMarkdown(AnOlderTable()),
            R"(# Which versions work together

As of 2026-06-11. A pair that is not here was never run: that is unknown, not "no". Verdicts link to their evidence; a range names every version that was run, and its lock is that of the newest.

## verl-torchtitan

| verl | torchtitan | runtime | device | status | flex | sdpa | layouts | ok with | not ok with | not tested | measured | expires | lock |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 0.9.1 (2026-06-10) | 0.3.0 (2026-05-30) | cpu, torch 2.13.0 | cpu | **fails** | [broken](../runs/bkm/cells/a-flex) \[1\] | unknown | 1 rank only: broken |  |  |  | 2026-06-01 | 2026-08-30 |  |
| v0.8.0 (aaaaaaaaa, 2026-05-20) | 0.3.0 (2026-05-30) | cpu, torch 2.13.0 | cpu | **works-except** | [**ok**](../runs/bkm/cells/a-flex) | [refused](../runs/bkm/cells/a-sdpa) \[2\] | 1 rank only: 1 ok, 1 refused | the model qwen3 (flex bf16) | the model qwen3 (sdpa bf16: refused at construct, refused-option) | the model llama3; the model gpt\_oss; the model qwen3\_moe (bkm cannot judge it: verl looks a flavor of torchtitan up by width, layers and vocabulary, and at the probe's sizes finds the dense one); the model deepseek\_v3; the model deepseek\_v3\_published (bkm cannot judge it: torchtitan builds flavors, and the one of the probe's sizes, debugmodel, scores experts by softmax: ask for deepseek\_v3); fp32; a critic; more than 1 thread; documents of other lengths; padded input; micro-batches; a checkpoint folder that an earlier run left; the export of weights; saving and loading a checkpoint; a sharded bf16 checkpoint; MXFP4 weights; RoPE keys of transformers 5 only; RoPE keys of transformers 4 only; a temperature other than 1; entropy; other numbers in config.json; a warm-up; a decay of the learning rate; a clipping norm that does not always act; other settings of AdamW; offloading; more than 1 rank; torch.compile; verl's workers and configuration files; a GPU | 2026-06-01 | 2026-08-30 | [lock](pylock.verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.toml) |

## Reasons

1. **broken** at resolve, `no-solution`: numpy&lt;2 and numpy&gt;=2 contradict each other (blame: engine, library)
2. **refused** at construct, `refused-option`: ValueError: &lt;b&gt;sdpa&lt;/b&gt; \| "not" supported &amp; =never)"
            "\xEF\xBF\xBD"
            R"( (blame: engine)

## Older evidence says otherwise

The newest counts.

- `engine=verl-torchtitan@git:verl@v0.8.0,attention=flex`: ok on 2026-06-01, but [refused at construct, refused-option](../runs/bkm/cells/a-sdpa) on 2026-06-01

## How to install what works

### verl-torchtitan: v0.8.0 (aaaaaaaaa, 2026-05-20) with torchtitan 0.3.0 (2026-05-30)

```sh
uv venv --python 3.11
uv pip sync pylock.verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.toml
```

)");
}

TEST(MarkdownTest, ShowsTheSpeedOfThePlainestRightCells) {
  PublishedTable table = AnOlderTable();
  EXPECT_THAT(TableMarkdown(table), Not(HasSubstr("a step, memory")));
  for (PublishedRow& row : table.rows) {
    for (PublishedCell& cell : row.cells) cell.evidence.cost = {2.5, 0.515, 950.2};
    PublishedCell other = row.cells[0];
    other.probe.micro_batches = 2;
    other.evidence.cost.step_seconds = 9;
    row.cells.insert(row.cells.begin(), other);
  }
  const std::string text = TableMarkdown(table);
  EXPECT_THAT(text, HasSubstr(" | a step, memory | layouts | "));
  EXPECT_THAT(text, HasSubstr(" | flex 0.52 s, 950 MiB | 1 rank only: "));
  EXPECT_THAT(text, HasSubstr(" |  | 1 rank only: broken")) << "a red cell has no speed to rely on";
}

TEST(MarkdownTest, ShowsTheHorizonOfTheSourcesAndOneCommandPerRow) {
  const std::string text = TableMarkdown(ATable(), EvidenceLinks::kToRuns);
  EXPECT_THAT(text, HasSubstr("| measured | sources known up to | expires |"));
  EXPECT_THAT(text, HasSubstr("| 2026-06-01 | verl 2026-06-05 | 2026-08-30 |"));
  EXPECT_THAT(text, HasSubstr("--attention flex,sdpa --seed 0\n```\n\n- lock `bbbbbbbbbbbb`\n"
                              "- cell `eeeeeeeeeeee`: flex qwen3 bf16\n"));

  const std::string old_text = TableMarkdown(AnOlderTable(), EvidenceLinks::kToRuns);
  EXPECT_THAT(old_text, Not(HasSubstr("sources known")));
  EXPECT_THAT(old_text, Not(HasSubstr("How to measure a row again")));
}

TEST(MarkdownTest, SaysHowManyPairsNobodyRan) {
  PublishedTable table = ATable();
  PublishedRow range = AGoodRow();
  range.library_from = AVersion("pypi:torchtitan==0.2.1", "0.2.1", "2025-12-26");
  range.library_to = AVersion("pypi:torchtitan==0.2.2", "0.2.2", "2026-02-20");
  range.library_versions = {range.library_from, range.library_to};
  table.rows.push_back(range);
  EXPECT_THAT(TableMarkdown(table),
              HasSubstr("\nOf the 6 pairs of these versions, 2 were never run: unknown.\n\n"));
}

TEST(MarkdownTest, LinksToNoEvidenceThatDoesNotTravelWithIt) {
  EXPECT_THAT(TableMarkdown(ATable()), HasSubstr("[**ok**](../runs/bkm/cells/a-flex)"));
  const std::string unlinked = TableMarkdown(ATable(), EvidenceLinks::kNone);
  EXPECT_THAT(unlinked, HasSubstr("| **ok** |"));
  EXPECT_THAT(unlinked, Not(HasSubstr("](../runs")));
  EXPECT_THAT(unlinked, Not(HasSubstr("link to")));
}

TEST(SummaryTest, IsShortAndSaysWhatIsMissing) {
  PublishedTable table = ATable();
  table.runs[0].finished = false;
  EXPECT_EQ(StepSummary(table),
            R"(## Which versions work together: 1 works-except, 1 fails

**Not finished:** ../runs/bkm. What it did not measure is unknown.

Works, newest first:

- verl-torchtitan: v0.8.0 (aaaaaaaaa, 2026-05-20) x torchtitan 0.3.0 (2026-05-30) (works-except)

Does not, by cause:

- 1 cell: **broken** at resolve, `no-solution`: numpy&lt;2 and numpy&gt;=2 contradict each other (blame: engine, library)
- 1 cell: **refused** at construct, `refused-option`: ValueError: &lt;b&gt;sdpa&lt;/b&gt; \| "not" supported &amp; =never)"
            "\xEF\xBF\xBD"
            " (blame: engine)\n");
}

}  // namespace
}  // namespace bkm
