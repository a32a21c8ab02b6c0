// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Verdict Ok() { return {.kind = VerdictKind::kOk, .stage = Stage::kGolden}; }
Verdict Broken(const std::string& reason = "name-missing") {
  return {.kind = VerdictKind::kBroken,
          .stage = Stage::kImport,
          .reason = reason,
          .message = "ImportError: no name 'X' (a.py:1)"};
}

CellRecord ARecord(const std::string& attention, Verdict verdict) {
  CellRecord record;
  record.cell.engine = "verl-torchtitan";
  record.cell.engine_subject = SubjectSpec{SourceKind::kGit, "verl", std::string(40, 'a')};
  record.cell.engine_label = "v0.8.0";
  record.cell.library_subject = SubjectSpec{SourceKind::kPypi, "torchtitan", "0.3.0"};
  record.cell.library_label = "0.3.0";
  record.cell.runtime = "cpu";
  record.cell.torch = "2.13.0";
  record.cell.probe.attention = attention;
  record.id = CellId(record.cell);
  record.verdict = std::move(verdict);
  return record;
}

RunRecord ARun(std::vector<CellRecord> cells) {
  return {.matrix = "m", .finished = true, .cells = std::move(cells)};
}

std::vector<std::string> Messages(const std::string& text, const RunRecord& run,
                                  bool whole = true) {
  std::vector<std::string> messages;
  for (const Surprise& surprise : Expectations::Parse(text, "m.expect.txt")->Compare(run, whole))
    messages.push_back(absl::StrCat(Name(surprise.kind), " | ", surprise.message));
  return messages;
}

constexpr char kFlex[] = "attention=flex -> broken at import, name-missing  # X moved\n";

TEST(ExpectationsTest, AsListedIsNoSurprise) {
  EXPECT_THAT(Messages(kFlex, ARun({ARecord("flex", Broken()), ARecord("varlen", Ok())})),
              IsEmpty());
  EXPECT_THAT(Messages("attention=flex -> broken  # whatever\n", ARun({ARecord("flex", Broken())})),
              IsEmpty());
}

TEST(ExpectationsTest, EachSurpriseHasItsOwnMessage) {
  const std::string text = absl::StrCat("# known\n", kFlex,
                                        "attention=sdpa -> refused  # on purpose\n"
                                        "attention=eager -> broken  # old\n");
  EXPECT_THAT(
      Messages(text, ARun({ARecord("flex", Broken("syntax-error")), ARecord("sdpa", Ok()),
                           ARecord("varlen", Broken())})),
      ElementsAre(
          "other-reason | verl-torchtitan v0.8.0 x torchtitan 0.3.0, flex, bf16, torch 2.13.0: "
          "broken at import, syntax-error: ImportError: no name 'X' (a.py:1) (m.expect.txt:2 "
          "expects "
          "broken at import, name-missing)",
          "passing | verl-torchtitan v0.8.0 x torchtitan 0.3.0, sdpa, bf16, torch 2.13.0: "
          "passes, but m.expect.txt:3 expects refused: remove the line (bkm accept RUN --expect "
          "FILE does)",
          "unlisted | verl-torchtitan v0.8.0 x torchtitan 0.3.0, varlen, bf16, torch 2.13.0: "
          "broken at import, name-missing: ImportError: no name 'X' (a.py:1) (not listed; "
          "bkm explain shows the cell)",
          "never-seen | m.expect.txt:4: stale expectation, matches no cell of the run: "
          "attention=eager -> broken  # old"));
}

TEST(ExpectationsTest, ACellThatIsUnexpectedlyUnsupportedIsASurprise) {
  const Verdict blind{.kind = VerdictKind::kUnsupported,
                      .stage = Stage::kBackend,
                      .reason = "witness-missing",
                      .message = "no layer was seen"};
  const RunRecord run = ARun({ARecord("flex", blind)});
  EXPECT_THAT(Messages("", run),
              ElementsAre(::testing::AllOf(
                  ::testing::StartsWith("unlisted | "),
                  ::testing::HasSubstr("unsupported at backend, witness-missing: no layer"))));
  const std::string line = "attention=flex -> unsupported at backend, witness-missing  # why\n";
  EXPECT_THAT(Messages(line, run), IsEmpty());
  EXPECT_THAT(Messages(line, ARun({ARecord("flex", Ok())})),
              ElementsAre(::testing::StartsWith("passing | ")));
}

TEST(ExpectationsTest, APartialRunMakesNoLineStale) {
  EXPECT_THAT(Messages(kFlex, ARun({ARecord("varlen", Ok())}), /*whole=*/false), IsEmpty());
}

TEST(ExpectationsTest, InconclusiveAndFlakyCellsAreNoSurprise) {
  CellRecord flaky = ARecord("flex", Broken());
  flaky.stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"broken", 1}}};
  EXPECT_THAT(Messages("", ARun({flaky, ARecord("sdpa", {.kind = VerdictKind::kSpurious})})),
              IsEmpty());
}

std::string ErrorOf(const std::string& line) {
  const std::string text = absl::StrCat("\n", line);
  return std::string(Expectations::Parse(text, "m.expect.txt").status().message());
}

TEST(ExpectationsTest, BadLinesAreRefusedWithTheirPlace) {
  const std::string form = ": a line is FILTER -> VERDICT at STAGE, REASON  # why it fails";
  EXPECT_EQ(ErrorOf("attention=flex broken"),
            absl::StrCat("m.expect.txt:2: ' -> ' is missing", form));
  EXPECT_EQ(ErrorOf("attention=flex -> broken"),
            absl::StrCat("m.expect.txt:2: the reason after '#' is missing", form));
  EXPECT_EQ(
      ErrorOf("attention=flex -> ok # x"),
      absl::StrCat(
          "m.expect.txt:2: 'ok' is not a failing verdict (refused, broken, wrong, unsupported)",
          form));
  EXPECT_EQ(ErrorOf("attention=flex -> broken at lunch # x"),
            absl::StrCat("m.expect.txt:2: unknown stage 'lunch'", form));
  EXPECT_EQ(ErrorOf("atention=flex -> broken # x"),
            absl::StrCat("m.expect.txt:2: filter 'atention=flex': unknown key 'atention': did you "
                         "mean 'attention'?",
                         form));
}

constexpr char kPair[] =
    "engine=verl-torchtitan@git:verl@v0.8.0,library=pypi:torchtitan==0.3.0,runtime=cpu,"
    "torch=2.13.0,model=qwen3,";

TEST(ExpectationsTest, RewritingKeepsCommentsOrderAndWhatStillHolds) {
  const std::string text = absl::StrCat("# Known.\n\n", kFlex,
                                        "attention=sdpa -> refused  # on purpose\n"
                                        "attention=eager -> broken  # old\n# The end.\n");
  const RunRecord run =
      ARun({ARecord("varlen", Broken()), ARecord("flex", Broken()), ARecord("sdpa", Broken())});
  const std::string after = Expectations::Parse(text, "m.expect.txt")->Rewritten(run);
  EXPECT_EQ(after, absl::StrCat("# Known.\n\n", kFlex, kPair,
                                "attention=sdpa,precision=bf16,device=cpu -> broken at import, "
                                "name-missing  # on purpose\n# The end.\n",
                                kPair,
                                "attention=varlen,precision=bf16,device=cpu -> broken at import, "
                                "name-missing  # ImportError: no name 'X'\n"));
  EXPECT_THAT(Messages(after, run), IsEmpty()) << "what is accepted is as expected";
}

TEST(ExpectationsTest, ALineForManyCellsIsSplitWhereOnePasses) {
  const RunRecord run = ARun({ARecord("flex", Broken()), ARecord("sdpa", Ok())});
  const std::string after =
      Expectations::Parse("engine=v0.8.0 -> broken  # all of it\n", "m.expect.txt")->Rewritten(run);
  EXPECT_EQ(after, absl::StrCat(kPair,
                                "attention=flex,precision=bf16,device=cpu -> broken at import, "
                                "name-missing  # all of it\n"));
  EXPECT_THAT(Messages(after, run), IsEmpty());
}

TEST(ExpectationsTest, RewrittenLinesReadBackForAnyEngineOptions) {
  RunRecord run = ARun({ARecord("flex", Ok())});
  for (const char* value :
       {"[1,2]", R"({"a":"b,c=d+e:f#g -> broken"})", R"(" x -> y # z ")", R"(["*","[a]?"])",
        R"("\\n%2C")", "\"\xc3\xa9\"", R"({"a":{"b":[null,true]}})"}) {
    run.cells.push_back(ARecord("flex", Broken()));
    run.cells.back().cell.probe.engine_options = {{"x", value}, {"a,b -> c", "1"}};
    run.cells.back().id = CellId(run.cells.back().cell);
  }
  const std::string after = Expectations::Parse("", "m.expect.txt")->Rewritten(run);
  EXPECT_THAT(Messages(after, run), IsEmpty()) << after;
  EXPECT_EQ(Expectations::Parse(after, "m.expect.txt")->Rewritten(run), after);
}

TEST(ExpectationsTest, ALineOfADefaultValueDoesNotCoverAPassingCellWithAnotherValue) {
  RunRecord run = ARun({ARecord("flex", Broken()), ARecord("flex", Ok())});
  run.cells[1].cell.probe.seed = 7;
  run.cells[1].cell.probe.engine_options = {{"x", "1"}};
  const std::string after = Expectations::Parse("", "m.expect.txt")->Rewritten(run);
  EXPECT_EQ(after, absl::StrCat(kPair,
                                "attention=flex,precision=bf16,device=cpu,seed=1 -> broken at "
                                "import, name-missing  # ImportError: no name 'X'\n"));
  EXPECT_THAT(Messages(after, run), IsEmpty());
}

}  // namespace
}  // namespace bkm
