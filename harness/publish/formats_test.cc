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
  EXPECT_THAT(text, HasSubstr("- status: fails (sandbox: weak)\n"));
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

As of 2026-06-11. A pair that is not here was never run: that is unknown, not "no". Marks link to
their evidence. A range names every version that was run, and its lock is that of the newest. `bkm
audit` looks up your own versions.

**verl v0.8.0 (aaaaaaaaa, 2026-05-20): install torchtitan 0.3.0 (2026-05-30) with torch 2.13.0**
([lock][1]). flex works on one rank. No pair of two releases works (1 were run).

In the tables, **ok** means that every claim of bkm held in every cell that ran with this attention;
`ok !` that a cell without options is right, and another one with this attention is not, which the
list below the table names; `(s)` that a stand-in kernel of bkm's ran for the real one; `-` that
nothing was run. "layouts" says with how many of the layouts of several ranks a cell is right.

## verl-torchtitan

All rows: torch 2.13.0, runtime cpu, device cpu.

| verl | torchtitan | its date | flex | sdpa | layouts | lock |
| --- | --- | --- | --- | --- | --- | --- |
| 0.9.1 | 0.3.0 | 2026-05-30 | [broken][2] | - | - |  |
| v0.8.0 | 0.3.0 | 2026-05-30 | [**ok**][2] | [refused][3] | - | [lock][1] |

### What is wrong

0.9.1 x 0.3.0:

- **broken** always: `no-solution` \[1\]

v0.8.0 x 0.3.0:

- **refused** with attention=sdpa: `refused-option` \[2\]

### What was not tested

- v0.8.0 x 0.3.0: the model llama3; the model gpt\_oss; the model qwen3\_moe (bkm cannot judge it:
  verl looks a flavor of torchtitan up by width, layers and vocabulary, and at the probe's sizes
  finds the dense one); the model deepseek\_v3; the model deepseek\_v3\_published (bkm cannot judge
  it: torchtitan builds flavors, and the one of the probe's sizes, debugmodel, scores experts by
  softmax: ask for deepseek\_v3); the model gemma2 (bkm cannot judge it: torchtitan has no such
  model); fp32; the engine's own trainer; a byte-level tokenizer under its own trainer; a critic;
  more than 1 thread; documents of other lengths; padded input; micro-batches; a checkpoint folder
  that an earlier run left; the export of weights; saving and loading a checkpoint; a sharded bf16
  checkpoint; MXFP4 weights; RoPE keys of transformers 5 only; RoPE keys of transformers 4 only; a
  temperature other than 1; entropy; other numbers in config.json; a warm-up; a decay of the
  learning rate; a clipping norm that does not always act; other settings of AdamW; offloading; more
  than 1 rank; torch.compile; verl's workers and configuration files; a GPU

## Reasons

1. **broken** at resolve, `no-solution`: numpy&lt;2 and numpy&gt;=2 contradict each other (blame:
   engine, library)
2. **refused** at construct, `refused-option`: ValueError: &lt;b&gt;sdpa&lt;/b&gt; \| "not"
   supported &amp; =never)"
            "\xEF\xBF\xBD"
            R"( (blame: engine)

## Older evidence says otherwise

The newest counts.

- `engine=verl-torchtitan@git:verl@v0.8.0,attention=flex`: ok on 2026-06-01, but [refused at
  construct, refused-option][3] on 2026-06-01

## The rows

The command that measures a row again asks for the cells of the newest version without further
options. Its run.json names the lock; the `key` in a cell's request.json is the same if the question
is the same, down to the files of both subjects.

### verl-torchtitan-0-9-1-torchtitan-0-3-0-cpu-torch-2-13-0

- status: fails
- versions: 0.9.1 (2026-06-10); torchtitan 0.3.0 (2026-05-30)
- runtime: cpu, torch 2.13.0, cpu
- measured: 2026-06-01; expires 2026-08-30
- layouts: 1 rank only: broken

### verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0

- status: works-except
- versions: v0.8.0 (aaaaaaaaa, 2026-05-20); torchtitan 0.3.0 (2026-05-30)
- runtime: cpu, torch 2.13.0, cpu
- measured: 2026-06-01; expires 2026-08-30
- layouts: 1 rank only: 1 ok, 1 refused
- ok with: the model qwen3 (flex bf16)
- not ok with: the model qwen3 (sdpa bf16: refused at construct, refused-option)
- lock `bbbbbbbbbbbb`
- cells: `eeeeeeeeeeee` flex qwen3 bf16

To install it:

```sh
uv venv --python 3.11
uv pip sync pylock.verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.toml
```

[1]: pylock.verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.toml
[2]: ../runs/bkm/cells/a-flex
[3]: ../runs/bkm/cells/a-sdpa
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
  EXPECT_THAT(text, HasSubstr("\n- a step, memory: flex 0.52 s, 950 MiB\n"));
  EXPECT_THAT(text.substr(text.find("- status: fails"), 200), Not(HasSubstr("a step, memory")))
      << "a red cell has no speed to rely on";
}

TEST(MarkdownTest, ShowsTheHorizonOfTheSourcesAndOneCommandPerRow) {
  const std::string text = TableMarkdown(ATable(), EvidenceLinks::kToRuns);
  EXPECT_THAT(text, HasSubstr("\n- sources known up to: verl 2026-06-05\n"));
  EXPECT_THAT(text, HasSubstr(" --attention \\\n    flex,sdpa --seed 0\n```\n"));
  EXPECT_THAT(text,
              HasSubstr("\n- lock `bbbbbbbbbbbb`\n- cells: `eeeeeeeeeeee` flex qwen3 bf16\n"));

  const std::string old_text = TableMarkdown(AnOlderTable(), EvidenceLinks::kToRuns);
  EXPECT_THAT(old_text, Not(HasSubstr("sources known")));
  EXPECT_THAT(old_text, Not(HasSubstr("To measure it again")));
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
  const std::string linked = TableMarkdown(ATable());
  EXPECT_THAT(linked, HasSubstr("| [**ok**][2] |"));
  EXPECT_THAT(linked, HasSubstr("\n[2]: ../runs/bkm/cells/a-flex\n"));
  const std::string unlinked = TableMarkdown(ATable(), EvidenceLinks::kNone);
  EXPECT_THAT(unlinked, HasSubstr("| **ok** |"));
  EXPECT_THAT(unlinked, Not(HasSubstr("../runs")));
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
