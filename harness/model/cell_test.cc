// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "harness/model/dimension.h"

namespace bkm {
namespace {

Cell Example() {
  Cell cell;
  cell.engine = "verl-torchtitan";
  cell.engine_subject = *ParseSubjectSpec("git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c");
  cell.engine_label = "v0.8.0";
  cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  cell.library_label = "0.3.0";
  cell.runtime = "cpu";
  cell.torch = "2.13.0";
  cell.probe.attention = "flex";
  return cell;
}

TEST(CellTest, ALibraryByItsOwnTrainerIsNoControl) {
  Cell cell;
  EXPECT_TRUE(cell.is_control());
  cell.probe.drive = "trainer";
  EXPECT_FALSE(cell.is_control());
}

TEST(CellTest, IdSpellsTheMainFieldsAndWhatIsNotDefault) {
  Cell cell = Example();
  cell.probe.seed = 7;
  cell.probe.engine_options = {{"spmd_backend", "\"default\""}};
  EXPECT_EQ(CellId(cell),
            "engine=verl-torchtitan@git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c,library=pypi:"
            "torchtitan==0.3.0,"
            "runtime=cpu,torch=2.13.0,model=qwen3,attention=flex,precision=bf16,device=cpu,seed=7,"
            "options=spmd_backend:\"default\"");
}

TEST(CellTest, IdIsAFilterForItsOwnCell) {
  const CellFilter filter = *CellFilter::Parse(CellId(Example()));
  Cell other = Example();
  other.probe.attention = "varlen";
  EXPECT_TRUE(filter.Matches(Example()));
  EXPECT_FALSE(filter.Matches(other));
}

TEST(CellTest, FilterKnowsLabelsKindsAndGlobs) {
  for (const char* text : {"engine=verl-torchtitan", "engine=v0.8.0", "engine=git:verl@v0.8.0",
                           "engine=verl-torchtitan@git:verl@v0.8.0", "engine=*7aed6b*",
                           "library=*0.3.*,attention=f*", "library=0.3.0"}) {
    EXPECT_TRUE(CellFilter::Parse(text)->Matches(Example())) << text;
  }
  for (const char* text : {"engine=verl-fsdp", "engine=v0.9.0", "attention=varlen", "seed=3"}) {
    EXPECT_FALSE(CellFilter::Parse(text)->Matches(Example())) << text;
  }
}

TEST(CellTest, FilterMatchesDefaultValues) {
  for (const char* text :
       {"steps=3", "seed=1", "head=lm", "ranks=1", "layout=1", "threads=1", "repeat=1",
        "documents=37+150+64+20+9/262+1+29/9+70+1+130+26+44", "documents=37+*", "input=pack*",
        "micro_batches=1", "leftover_checkpoint=false", "seed=", "seed=*", "options=", "options=*",
        "relax=", "optimizer=", "plant="}) {
    EXPECT_TRUE(CellFilter::Parse(text)->Matches(Example())) << text;
  }
  Cell cell = Example();
  cell.probe.seed = 7;
  for (const char* text : {"seed=1", "seed="}) {
    EXPECT_FALSE(CellFilter::Parse(text)->Matches(cell)) << text;
  }
}

// Every string field and engine option, with values that hold what ids and filters give a meaning.
std::vector<Cell> HostileCells() {
  const std::vector<std::string> texts = {
      "a,b",      "a,b=c",        "a=b",  "a+b",   "a:b",    "a#b", "a -> b # c", " a ",
      "a\nb",     "a\\nb",        "a\"b", "[a]",   "[!a]",   "*",   "a*",         "?",
      "{x}",      "%2C",          "%",    "%%2C",  "a%",     "\\",  "\\*",        "\x7f",
      "\xc3\xa9", "\xe2\x86\x92", "a",    "a%2Cb", "%5Ba%5D"};
  std::vector<Cell> cells;
  for (const std::string& text : texts) {
    const Json values[] = {
        text, {text}, {text, text}, {{text, 1}}, {{"x", {{"y", {text, nullptr}}}}}};
    for (const Json& value : values) {
      cells.push_back(Example());
      cells.back().probe.engine_options = {{"x", value.dump()}};
    }
    cells.push_back(Example());
    cells.back().probe.engine_options = {{text, "1"}, {"x", "2"}};
    for (std::string Cell::*field : {&Cell::runtime, &Cell::torch, &Cell::lock}) {
      cells.push_back(Example());
      cells.back().*field = text;
    }
    for (std::vector<std::string> Cell::*field : {&Cell::relax, &Cell::plant}) {
      cells.push_back(Example());
      cells.back().*field = {text};
      cells.push_back(Example());
      cells.back().*field = {text, "a"};
    }
    cells.push_back(Example());
    cells.back().library_subject = SubjectSpec{SourceKind::kPath, "", "/" + text};
    cells.back().library_label = text;
  }
  return cells;
}

bool IsSameCell(const Cell& a, const Cell& b) {
  return a.probe == b.probe && a.runtime == b.runtime && a.torch == b.torch && a.lock == b.lock &&
         a.relax == b.relax && a.plant == b.plant && a.library_subject == b.library_subject;
}

// A filter matches every value of a field that it does not name.
bool NameTheSameFields(const Cell& a, const Cell& b) {
  return a.probe.engine_options.empty() == b.probe.engine_options.empty() &&
         a.lock.empty() == b.lock.empty() && a.relax.empty() == b.relax.empty() &&
         a.plant.empty() == b.plant.empty();
}

TEST(CellTest, IdOfAnyCellIsAFilterForThatCellAlone) {
  const std::vector<Cell> cells = HostileCells();
  std::vector<std::string> ids;
  for (const Cell& cell : cells) ids.push_back(CellId(cell));
  for (size_t i = 0; i < cells.size(); ++i) {
    const absl::StatusOr<CellFilter> filter = CellFilter::Parse(ids[i]);
    ASSERT_TRUE(filter.ok()) << filter.status();
    for (size_t j = 0; j < cells.size(); ++j) {
      const bool is_same = IsSameCell(cells[i], cells[j]);
      EXPECT_EQ(ids[i] == ids[j], is_same) << ids[i] << "\n" << ids[j];
      if (NameTheSameFields(cells[i], cells[j])) {
        EXPECT_EQ(filter->Matches(cells[j]), is_same) << ids[i] << "\n" << ids[j];
      }
    }
  }
}

TEST(CellTest, IdEscapesWhatSeparatesFields) {
  Cell cell = Example();
  cell.torch = "2.13.0+cpu";
  cell.probe.engine_options = {{"compile", R"({"mode":"a b","passes":[1,"x*"]})"}};
  EXPECT_TRUE(absl::EndsWith(
      CellId(cell), R"(torch=2.13.0+cpu,model=qwen3,attention=flex,precision=bf16,device=cpu,)"
                    R"(options=compile:{"mode":"a b"%2C"passes":%5B1%2C"x%2A"%5D})"))
      << CellId(cell);
}

TEST(CellTest, PatternsWithoutEscapesMatchTheValueTheySpell) {
  Cell cell = Example();
  cell.probe.engine_options = {{"x", R"(["a","b c"])"}};
  const auto matches = [&](const char* pattern) {
    return CellFilter::FromPatterns({{"options", pattern}})->Matches(cell);
  };
  EXPECT_TRUE(matches(R"(x:["a","b c"])"));
  EXPECT_TRUE(matches(R"(x:%5B"a","b%20c"%5d)"));
  EXPECT_TRUE(matches(R"(*"a",*)"));
  EXPECT_FALSE(matches(R"(x:["a"])"));
}

TEST(CellTest, ValueThatNoCellHasIsAnError) {
  Cell other = Example();
  other.probe.attention = "varlen";
  other.probe.seed = 7;
  const Cell example = Example();
  const auto error_of = [&](const char* text) {
    return std::string(CellFilter::Parse(text)->CheckValues({&example, &other}).message());
  };
  EXPECT_EQ(error_of("attention=f*,seed=7,steps=3,engine=verl-torchtitan"), "");
  EXPECT_EQ(error_of("attention=felx"),
            "no cell has attention 'felx' (cells have: flex, varlen): did you mean 'flex'?");
  EXPECT_EQ(error_of("attention=flex,seed=2"), "no cell has seed '2' (cells have: 1, 7)");
  EXPECT_EQ(error_of("options=x:1"), "no cell has options 'x:1' (cells have: no value)");
  EXPECT_EQ(error_of("engine=verl-torchtita"),
            "no cell has engine 'verl-torchtita' (cells have: "
            "verl-torchtitan@git:verl@v0.8.0): did you mean 'verl-torchtitan'?");
}

TEST(CellTest, OnlyTheFirstValuesAreListed) {
  std::vector<Cell> cells(10, Example());
  std::vector<const Cell*> pointers;
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].torch = "2.1" + std::to_string(i);
    pointers.push_back(&cells[i]);
  }
  EXPECT_EQ(CellFilter::Parse("torch=nightly")->CheckValues(pointers).message(),
            "no cell has torch 'nightly' (cells have: 2.10, 2.11, 2.12, 2.13, 2.14, 2.15, 2.16, "
            "2.17 and 2 more)");
}

TEST(CellTest, BadFilterSaysWhatIsMeant) {
  EXPECT_EQ(CellFilter::Parse("atention=flex").status().message(),
            "filter 'atention=flex': unknown key 'atention': did you mean 'attention'?");
  EXPECT_EQ(CellFilter::Parse("flex").status().message(),
            "'flex' is not a filter: write key=pattern,key=pattern, for example "
            "engine=verl-torchtitan,attention=flex");
}

// Each field of a probe at another value than its default.
Probe FarFromDefault() {
  Probe probe;
  probe.model = "gpt_oss";
  probe.attention = "sdpa";
  probe.precision = "fp32";
  probe.device = "cuda";
  probe.layout = *ParseLayout("dp_replicate=2+tp=2");
  probe.threads = 2;
  probe.steps = 2;
  probe.seed = 9;
  probe.documents = {{37, 150, 64}, {20, 30}};
  probe.drive = "trainer";
  probe.data = "marked";
  probe.global_batch_size = 2;
  probe.max_length = 40;
  probe.truncation = "left";
  probe.head = "value";
  probe.input = "padded";
  probe.micro_batches = 2;
  probe.export_weights = probe.resume_checkpoint = true;
  probe.adapter_options = {{"leftover_checkpoint", "true"}};
  probe.checkpoint = "sharded-bf16";
  probe.rope_keys = "rope_theta";
  probe.temperature = 0.7;
  probe.entropy = true;
  probe.config = {{"rms_norm_eps", "1e-05"}, {"rope_theta", "1e+20"}};
  probe.engine_options = {{"param_offload", "true"},
                          {"strategy", "\"fsdp\""},
                          {"target_modules", "[\"q_proj+a:b\",\"v,w\"]"}};
  probe.optimizer = {.learning_rate = 1e-3,
                     .beta1 = 0.8,
                     .beta2 = 0.9,
                     .epsilon = 1e-8,
                     .weight_decay = 0.1,
                     .clip_norm = 5,
                     .warmup_steps = 2,
                     .schedule = "one-based",
                     .decay = "linear",
                     .total_steps = 7,
                     .min_lr_factor = 0.1};
  return probe;
}

TEST(CellTest, AnIdNamesItsProbe) {
  EXPECT_EQ(*ProbeOfId(CellId(Cell())), Probe());
  Cell cell = Example();
  cell.probe = FarFromDefault();
  const absl::StatusOr<Probe> read = ProbeOfId(CellId(cell));
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << CellId(cell);
  EXPECT_EQ(*read, cell.probe) << ToLine(ToJson(*read)) << "\n" << ToLine(ToJson(cell.probe));
}

// A field that ids do not have, or that cannot be read back, is missing in the table of keys.
TEST(CellTest, EveryFieldOfAProbeHasARowInTheTableOfKeys) {
  const Json plain = ToJson(Probe()), far = ToJson(FarFromDefault());
  std::set<std::string> fields = {"ranks"};  // follows from the layout
  for (const Dimension& key : Dimensions()) {
    if (key.field != nullptr) fields.insert(key.field);
  }
  for (const auto& [name, value] : far.items()) {
    EXPECT_TRUE(fields.contains(name)) << name;
    EXPECT_NE(plain.value(name, Json()), value) << name << ": FarFromDefault() leaves it out";
  }
}

// What no aspect names would silently be taken for tested.
TEST(DimensionsTest, EveryOptionOfAProbeHasWordsForWhatARowWasTestedWith) {
  const std::set<std::string> without = {
      "layout",   // each has words of its own
      "kernels",  // Verdict::blind says it
      "data",       "global_batch_size",
      "max_length", "truncation",  // of trainers: "drive" has words
      "ppo",                       // "objective" has words
      "steps",      "seed"};       // say how much, not what
  for (const Dimension& dimension : Dimensions()) {
    const bool is_option =
        dimension.use == DimensionUse::kOption || dimension.use == DimensionUse::kDetail;
    if (is_option && dimension.field != nullptr) {
      EXPECT_EQ(dimension.aspects.empty(), without.contains(dimension.name)) << dimension.name;
    }
    for (const AskedAspect& aspect : dimension.aspects)
      EXPECT_FALSE(aspect.is_asked(Probe())) << aspect.words << ": the default asks for it";
  }
}

TEST(CellTest, ATextThatIsNoIdIsTold) {
  EXPECT_TRUE(absl::StrContains(ProbeOfId("model=qwen3,colour=red").status().message(),
                                "unknown key 'colour'"));
  EXPECT_FALSE(ProbeOfId("micro_batches=many").ok());
}

}  // namespace
}  // namespace bkm
