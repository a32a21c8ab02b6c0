// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "harness/matrix/testing_plan.h"

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
  PlanEnvironment environment = Unresolved();
  environment.resolve = [](const SubjectSpec& spec) -> absl::StatusOr<Subject> {
    Subject subject{.spec = spec, .label = spec.revision};
    if (spec.source == SourceKind::kGit) subject.spec.revision = "commit-of-" + spec.revision;
    return subject;
  };
  return environment;
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

// Users know the trainer's names; the cell is the one that the probe's fields ask for.
TEST(PlanTest, ATrainersOwnNamesAskForFields) {
  const auto probe = [](const char* kind, const std::string& rest) {
    const std::string subjects =
        std::string(kind) == "verl-fsdp" ? R"(, "subjects": ["pypi:verl==0.9.1"])" : "";
    const std::string text = absl::StrCat(
        R"({"name": "m", "groups": [{"engine": {"kind": ")", kind, R"(")", subjects,
        R"(}, "library": "pypi:transformers==5.10.2", "probe": {"attention": "sdpa", )",
        R"("drive": "trainer", )", rest, "}}]}");
    return MatrixFromJson(*ParseJson(text, "m.json"), "m.json")->groups[0].probes[0];
  };
  EXPECT_EQ(probe("verl-fsdp", R"("engine_options": [{"data.train_batch_size": 4,
                    "optim.lr_scheduler_type": "cosine", "optim.lr_warmup_steps": 1}])"),
            probe("verl-fsdp", R"("global_batch_size": 4, "optimizer": {"warmup_steps": 1,
                    "decay": "cosine", "total_steps": 3})"));
  EXPECT_EQ(probe("transformers-trainer", R"("engine_options": [{"gradient_accumulation_steps": 2,
                    "lr_scheduler_type": "constant", "gradient_checkpointing": true}])"),
            probe("transformers-trainer", R"("micro_batches": 2,
                    "engine_options": [{"gradient_checkpointing": true}])"));
  // Asked twice: the trainer's adapter says so.
  EXPECT_EQ(probe("verl-fsdp", R"("global_batch_size": 4,
                    "engine_options": [{"data.train_batch_size": 2}])")
                .engine_options.count("data.train_batch_size"),
            1u);
}

TEST(PlanTest, SaysWhyACellIsOut) {
  const auto cells = *ExpandMatrix(
      TwoByTwo(R"(, "exclude": [{"engine": "v1", "attention": "varlen", "why": "known"}])"),
      {*CellFilter::Parse("attention=varlen")}, Environment());
  EXPECT_THAT(Summaries(cells), ElementsAre("v1 flex out: not matched by --filter",
                                            "v1 varlen out: excluded by the matrix: known",
                                            "v2 flex out: not matched by --filter", "v2 varlen"));
}

TEST(PlanTest, FiltersAndExclusionsMatchDefaultValues) {
  const auto cells = *ExpandMatrix(
      TwoByTwo(R"(, "exclude": [{"attention": "varlen", "steps": "3", "why": "known"}])"),
      {*CellFilter::Parse("engine=v1,seed=1,documents=37+150+*")}, Environment());
  EXPECT_THAT(Summaries(cells),
              ElementsAre("v1 flex", "v1 varlen out: excluded by the matrix: known",
                          "v2 flex out: not matched by --filter",
                          "v2 varlen out: excluded by the matrix: known"));
}

std::string ErrorOf(const char* extra, const char* filter) {
  std::vector<CellFilter> filters;
  if (*filter) filters.push_back(*CellFilter::Parse(filter));
  return std::string(ExpandMatrix(TwoByTwo(extra), filters, Environment()).status().message());
}

TEST(PlanTest, AFilterValueThatNoCellHasIsAnError) {
  EXPECT_EQ(ErrorOf("", "engine=v1,attention=vralen"),
            "--filter: no cell has attention 'vralen' (cells have: flex, varlen): did you mean "
            "'varlen'?");
  EXPECT_EQ(ErrorOf("", "steps=4"), "--filter: no cell has steps '4' (cells have: 3)");
}

TEST(PlanTest, AnExclusionThatMatchesNoCellIsAnError) {
  EXPECT_EQ(ErrorOf(R"(, "exclude": [{"attention": "flex", "why": "x"},
                                    {"engine": "v3", "why": "x"}])",
                    ""),
            "m.json: $.exclude[1]: no cell has engine 'v3' (cells have: "
            "verl-torchtitan@git:verl@v1, verl-torchtitan@git:verl@v2)");
  EXPECT_EQ(ErrorOf(R"(, "exclude": [{"engine": "*@v1", "library": "0.3.0", "attention": "flex",
                                     "torch": "2.13.0", "why": "x"}])",
                    ""),
            "");
}

TEST(PlanTest, AnExclusionWhoseValuesNoCellHasTogetherIsAnError) {
  Matrix matrix = TwoByTwo(R"(, "exclude": [{"engine": "v1", "attention": "sdpa", "why": "x"}])");
  matrix.groups.push_back(matrix.groups[0]);
  matrix.groups[0].engines.pop_back();
  matrix.groups[1].engines.erase(matrix.groups[1].engines.begin());
  for (Probe& probe : matrix.groups[1].probes) probe.attention = "sdpa";
  EXPECT_EQ(
      ExpandMatrix(matrix, {}, Environment()).status().message(),
      "m.json: $.exclude[0]: no cell of the matrix has all of these values: remove the entry");
}

TEST(PlanTest, AFilterDoesNotMakeAnExclusionStale) {
  EXPECT_EQ(ErrorOf(R"(, "exclude": [{"engine": "v1", "why": "x"}])", "engine=v2"), "");
}

// The plan of one engine kind with the given fields of the probe.
std::vector<PlannedCell> PlanOf(const char* kind, const char* subjects, const char* probe) {
  const std::string text = std::string(R"({"name": "m", "groups": [{"engine": {"kind": ")") + kind +
                           "\"" + subjects +
                           R"(}, "library": "pypi:torchtitan==0.3.0", "probe": {)" + probe + "}}]}";
  const Matrix matrix = *MatrixFromJson(*ParseJson(text, "m.json"), "m.json");
  return *ExpandMatrix(matrix, {}, Environment());
}

constexpr char kVerl[] = R"(, "subjects": "git:verl@v1")";

TEST(PlanTest, ProbeFieldsAreAxes) {
  const auto cells = PlanOf("verl-torchtitan", kVerl,
                            R"("attention": "flex", "input": ["packed", "padded"],
                               "micro_batches": [1, 2], "optimizer": [{}, {"clip_norm": 5}])");
  ASSERT_EQ(cells.size(), 8u);
  EXPECT_TRUE(cells[0].id.ends_with(",device=cpu")) << cells[0].id;
  EXPECT_TRUE(cells[7].id.ends_with(",input=padded,micro_batches=2,optimizer=clip_norm:5.0"))
      << cells[7].id;
}

TEST(PlanTest, FormsOfTheModelFolderAreAxes) {
  const auto cells = PlanOf("verl-torchtitan", kVerl,
                            R"("attention": "flex", "checkpoint": ["single-fp32", "sharded-bf16"],
                               "rope_keys": ["both", "rope_parameters"],
                               "config": [{}, {"rms_norm_eps": 1e-5, "rope_theta": 10000}])");
  ASSERT_EQ(cells.size(), 8u);
  EXPECT_TRUE(cells[0].id.ends_with(",device=cpu")) << cells[0].id;
  EXPECT_TRUE(
      cells[7].id.ends_with(",checkpoint=sharded-bf16,rope_keys=rope_parameters,"
                            "config=rms_norm_eps:1e-05+rope_theta:10000"))
      << cells[7].id;
}

TEST(PlanTest, AWarmupIsCountedAsTheEngineKindCounts) {
  const char* probe = R"("attention": "flex", "optimizer": {"warmup_steps": 2})";
  EXPECT_EQ(PlanOf("verl-torchtitan", kVerl, probe)[0].cell.probe.optimizer.schedule, "one-based");
  EXPECT_EQ(PlanOf("torchtitan", "", probe)[0].cell.probe.optimizer.schedule, "one-based");
  EXPECT_EQ(PlanOf("torchtitan", "", R"("attention": "flex",
                   "optimizer": {"warmup_steps": 2, "schedule": "zero-based"})")[0]
                .cell.probe.optimizer.schedule,
            "zero-based");
}

TEST(PlanTest, KernelsAreAskedForWithTheAttentionThatHasThem) {
  EXPECT_EQ(PlanOf("transformers", "", R"("attention": "sdpa", "kernels": "real")")[0].why,
            "sdpa has no kernels of flash_attn: leave kernels out");
  EXPECT_EQ(
      PlanOf("transformers", "", R"("attention": "flash_attention_2", "kernels": "real")")[0].why,
      "");
  EXPECT_EQ(PlanOf("torchtitan", "", R"("attention": "sdpa", "kernels": "real")")[0].why,
            "torchtitan has no attention by flash_attn");
}

TEST(PlanTest, TemperatureAndEntropyAreAxes) {
  const auto cells = PlanOf("torchtitan", "", R"("attention": "flex", "temperature": [1, 0.7],
                            "entropy": [false, true])");
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_TRUE(cells[0].id.ends_with(",device=cpu")) << cells[0].id;
  EXPECT_TRUE(cells[3].id.ends_with(",temperature=0.7,entropy=true")) << cells[3].id;
}

TEST(PlanTest, SaysWhichDecayAnEngineKindLacks) {
  const char* probe = R"("attention": "sdpa", "optimizer": {"decay": "linear", "total_steps": 3})";
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, probe)[0].why,
            "verl-fsdp has no linear decay of the learning rate");
  EXPECT_EQ(PlanOf("verl-torchtitan", kVerl, probe)[0].why, "");
}

TEST(PlanTest, AnUpdateOnARolloutIsByTheWorkersOfATrainer) {
  const auto of = [](const char* kind, const char* more) {
    return PlanOf(kind, kVerl,
                  absl::StrCat(R"("attention": "sdpa", "objective": "ppo")", more).c_str())[0];
  };
  EXPECT_EQ(of("verl-fsdp", "").why, "");
  EXPECT_EQ(of("verl-fsdp", "").cell.probe.drive, "trainer");
  EXPECT_EQ(of("verl-fsdp", R"(, "head": "value", "micro_batches": 2)").why, "");
  EXPECT_EQ(of("verl-torchtitan", "").why,
            "verl-torchtitan has no workers that update a policy on a roll-out");
  EXPECT_EQ(of("verl-fsdp", R"(, "resume_checkpoint": true)").why,
            "a cell that a trainer drives cannot be asked for a checkpoint of an update on a "
            "roll-out yet: leave drive=trainer or that out");
  EXPECT_THAT(of("verl-fsdp", R"(, "ppo": {"clip_high": 0.5})").id,
              testing::HasSubstr(",objective=ppo,ppo=clip_high:0.5,"));
  const std::string without = R"({"model": "qwen3", "ppo": {"clip_high": 0.5}})";
  EXPECT_THAT(ProbeFromJson(*ParseJson(without, "p"), "p").status().message(),
              testing::HasSubstr("set it only together with objective=ppo"));
  const std::string by_engine = R"({"model": "qwen3", "objective": "ppo"})";
  EXPECT_THAT(ProbeFromJson(*ParseJson(by_engine, "p"), "p").status().message(),
              testing::HasSubstr("ask for drive=trainer, too"));
}

TEST(PlanTest, ATrainerIsAskedForWhatItCanBeDrivenTo) {
  const auto why = [](const char* kind, const char* more) {
    return PlanOf(kind, FindEngineKind(kind)->engine_source.empty() ? "" : kVerl,
                  absl::StrCat(R"("attention": "sdpa", "drive": "trainer")", more).c_str())[0]
        .why;
  };
  EXPECT_EQ(why("verl-fsdp", ""), "");
  EXPECT_EQ(why("transformers", ""), "transformers has no trainer that a cell can start");
  EXPECT_EQ(why("verl-fsdp",
                R"(, "optimizer": {"warmup_steps": 2, "decay": "cosine", "total_steps": 3})"),
            "");
  EXPECT_EQ(
      why("verl-fsdp", R"(, "optimizer": {"decay": "cosine", "total_steps": 9})"),
      "a cell that a trainer drives cannot be asked for a decay that is made for more steps than "
      "it trains yet: leave drive=trainer or that out");
  EXPECT_EQ(why("verl-fsdp", R"(, "layout": "dp_shard=2", "global_batch_size": 4)"), "");
  EXPECT_EQ(why("verl-fsdp", R"(, "layout": "dp_shard=2")"),
            "a step of 5 documents has no 2 equal parts, one for each data-parallel rank");
  EXPECT_EQ(why("verl-fsdp",
                R"(, "layout": "dp_shard=2", "global_batch_size": 4, "resume_checkpoint": true)"),
            "");
  EXPECT_EQ(why("transformers-trainer", R"(, "layout": "dp_replicate=2", "global_batch_size": 4)"),
            "on several ranks the trainer of transformers-trainer fills the last batch of an epoch "
            "up with documents that it had: ask for a number of documents that the global batch of "
            "4 divides, which 5 is not");
  const char* ulysses = R"("attention": "sdpa", "drive": "trainer", "layout": "ulysses=2")";
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, ulysses)[0].not_offered,
            "cells of verl-fsdp by its trainer cannot be asked for ulysses, only for dp_replicate, "
            "dp_shard");
  EXPECT_EQ(why("verl-fsdp", R"(, "engine_options": [{"engine.param_offload": true}])"), "");
  EXPECT_EQ(why("verl-fsdp", R"(, "head": "value")"),
            "a cell that a trainer drives cannot be asked for a value head: it trains language "
            "models yet: leave drive=trainer or that out");
  const char* lora =
      R"("attention": "sdpa", "drive": "trainer", "engine_options": [{"model.lora_rank": 8}])";
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, lora)[0].not_offered,
            "engine option model.lora_rank: LoRA trains adapters, and there is no golden of them "
            "yet");
  EXPECT_EQ(why("verl-fsdp", R"(, "documents": [20, 7, 3])"), "");
  EXPECT_EQ(why("verl-fsdp", R"(, "documents": [20, 2])"),
            "a trainer reads conversations, and none has 2 tokens: documents of at least 3 are "
            "needed");
  EXPECT_EQ(why("verl-fsdp", R"(, "documents": [20, 5, 5], "global_batch_size": 2)"),
            "a step may have no answer to train: documents of fewer than 6 tokens have none");
}

TEST(PlanTest, ATrainerDealsAndShortensDocumentsAsItsKindCan) {
  const auto planned = [](const char* kind, const char* more) {
    return PlanOf(
        kind, FindEngineKind(kind)->engine_source.empty() ? "" : kVerl,
        absl::StrCat(R"("attention": ")", std::string(kind) == "torchtitan" ? "flex" : "sdpa",
                     R"(", "drive": "trainer")", more)
            .c_str())[0];
  };
  const PlannedCell cut = planned("verl-fsdp", R"(, "global_batch_size": 2, "max_length": 60)");
  EXPECT_EQ(cut.why, "");
  EXPECT_EQ(cut.cell.probe.truncation, "right") << "the kind's own";
  EXPECT_EQ(planned("verl-fsdp", R"(, "max_length": 60, "truncation": "drop")").why,
            "the trainer of verl-fsdp does not shorten documents by 'drop': ask for right or left");
  EXPECT_EQ(planned("verl-fsdp", R"(, "global_batch_size": 3, "micro_batches": 2)").why,
            "a global batch of 3 documents has no 2 equal micro-batches");
  const char* rows = R"(, "global_batch_size": 2, "max_length": 120, "micro_batches": 2)";
  EXPECT_EQ(planned("torchtitan", rows).why, "");
  EXPECT_EQ(planned("torchtitan", rows).cell.probe.truncation, "drop");
  EXPECT_EQ(planned("torchtitan", R"(, "max_length": 120)").why,
            "the trainer of torchtitan packs rows: ask for both, their number (global_batch_size) "
            "and their length (max_length), or for neither");
  EXPECT_EQ(planned("torchtitan", R"(, "global_batch_size": 2, "max_length": 90)").why,
            "the trainer of torchtitan cuts a row into 8 equal parts, and max_length is 90: a "
            "multiple of 8 is needed");
}

TEST(PlanTest, AKindThatIsATrainerHasItsDataAndItsUndecayedParameters) {
  const Probe probe = PlanOf("transformers-trainer", "", R"("attention": "sdpa")")[0].cell.probe;
  EXPECT_EQ(probe.drive, "trainer");
  EXPECT_EQ(probe.data, "marked");
  EXPECT_EQ(probe.optimizer.undecayed, "norms-and-biases");
  EXPECT_EQ(PlanOf("transformers-trainer", "", R"("attention": "sdpa", "drive": "engine")")[0].why,
            "transformers-trainer is a trainer: leave drive=engine out");
  EXPECT_EQ(PlanOf("transformers-trainer", "", R"("attention": "sdpa", "data": "turns")")[0].why,
            "the trainer of transformers-trainer reads no data of the form turns: ask for marked");
  const char* single = R"("attention": "sdpa", "drive": "trainer", "data": "single")";
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, single)[0].why,
            "the trainer of verl-fsdp reads no data of the form single: ask for turns or marked");
  const char* undecayed = R"("attention": "sdpa", "optimizer": {"undecayed": "norms-and-biases"})";
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, undecayed)[0].why,
            "which parameters do not decay is verl-fsdp's own choice: leave undecayed out of "
            "optimizer");
  EXPECT_EQ(PlanOf("verl-fsdp", kVerl, R"("attention": "sdpa", "data": "marked")")[0].why,
            "data is what a trainer reads: ask for drive=trainer, too");
  EXPECT_EQ(
      PlanOf("verl-fsdp", kVerl, R"("attention": "sdpa", "drive": "trainer")")[0].cell.probe.data,
      "turns");
}

TEST(PlanTest, ACriticHasNoLogits) {
  for (const char* field : {R"("temperature": 0.7)", R"("entropy": true)"}) {
    const std::string probe = std::string(R"("attention": "sdpa", "head": "value", )") + field;
    EXPECT_EQ(PlanOf("verl-fsdp", kVerl, probe.c_str())[0].why,
              "a critic has no logits: neither a temperature nor an entropy");
  }
}

TEST(PlanTest, SaysWhyAProbeDoesNotApplyToAnEngineKind) {
  EXPECT_EQ(PlanOf("torchtitan", "", R"("attention": "flex", "input": "padded")")[0].why,
            "torchtitan takes packed input only");
  EXPECT_EQ(PlanOf("torchtitan", "", R"("attention": "flex", "leftover_checkpoint": true)")[0].why,
            "torchtitan does not look for checkpoints by itself");
  EXPECT_EQ(PlanOf("verl-torchtitan", kVerl, R"("attention": "flex", "head": "value")")[0].why,
            "verl-torchtitan has no value head");
}

TEST(PlanTest, SaysWhenDocumentsCannotBeCutAsAsked) {
  // verl cuts by tokens, into parts of at least the longest document.
  EXPECT_EQ(PlanOf("verl-torchtitan", kVerl, R"("attention": "flex", "micro_batches": 2)")[0].why,
            "");
  EXPECT_EQ(PlanOf("verl-torchtitan", kVerl, R"("attention": "flex", "micro_batches": 3)")[0].why,
            "verl-torchtitan cuts the 5 documents of step 1 into 2 micro-batches instead of 3");
  EXPECT_EQ(PlanOf("torchtitan", "", R"("attention": "flex", "micro_batches": 3)")[0].why, "");
  constexpr char kTwoLayouts[] =
      R"("attention": "flex", "documents": [[9, 9, 9, 9], [9, 9, 9, 9, 9]], "micro_batches": 4)";
  EXPECT_EQ(PlanOf("torchtitan", "", kTwoLayouts)[0].why,
            "torchtitan cuts the 5 documents of step 2 into 3 micro-batches instead of 4");
}

TEST(PlanTest, ACellThatTheDeviceCannotRunIsInAndUnsupported) {
  EXPECT_EQ(PlanOf("transformers", "", R"("attention": "flash_attention_3")")[0].unsupported,
            "flash_attention_3 needs a CUDA device of compute capability 9.0 or higher, and the "
            "device is a CPU");
  const PlannedCell cell = PlanOf("torchtitan", "", R"("attention": "flex_flash")")[0];
  EXPECT_TRUE(cell.included);
  EXPECT_EQ(
      cell.unsupported,
      "flex_flash needs a CUDA device of compute capability 9.0 or higher, and the device is a "
      "CPU");
}

TEST(PlanTest, ACellForAGpuIsUnsupportedWhereThereIsNoneAndInForAnotherMachine) {
  Matrix matrix = TwoByTwo("");
  std::vector<Probe>& probes = matrix.groups[0].probes;
  probes.insert(probes.end(), 2, probes[0]);
  for (size_t i = 1; i < probes.size(); ++i) probes[i].device = i % 2 ? "cuda" : "cpu";
  PlanEnvironment environment = Environment();
  int asked = 0;
  std::vector<CudaDevice> devices;
  environment.devices = [&]() -> absl::StatusOr<std::vector<CudaDevice>> {
    ++asked;
    return devices;
  };
  const auto unsupported = [&] {
    std::vector<std::string> found;
    const std::vector<PlannedCell> cells = *ExpandMatrix(matrix, {}, environment);
    for (const PlannedCell& planned : cells) {
      EXPECT_TRUE(planned.included);
      if (planned.cell.probe.device == "cuda") found.push_back(planned.unsupported);
    }
    return std::set<std::string>(found.begin(), found.end());
  };
  EXPECT_THAT(unsupported(), ElementsAre(::testing::HasSubstr("this machine has none")));
  EXPECT_EQ(asked, 1);
  devices = {{.name = "NVIDIA H100", .major = 9}};
  EXPECT_THAT(unsupported(), ElementsAre(""));
  environment.devices = [] { return absl::UnavailableError("nvidia-smi: no answer"); };
  EXPECT_EQ(ExpandMatrix(matrix, {}, environment).status().message(), "nvidia-smi: no answer");
  environment.devices = nullptr;
  EXPECT_THAT(unsupported(), ElementsAre(""));
}

TEST(PlanTest, TheSameCellTwiceIsOneCell) {
  Matrix matrix = TwoByTwo("");
  matrix.groups.push_back(matrix.groups[0]);
  EXPECT_EQ(ExpandMatrix(matrix, {}, Environment())->size(), 4u);
}

Matrix OneCell(const std::string& kind, const std::string& probe, const std::string& limits = "") {
  const bool is_verl = kind.starts_with("verl");
  const std::string text =
      R"({"name": "m", "groups": [{"engine": {"kind": ")" + kind + R"(", "subjects": [)" +
      (is_verl ? R"("git:verl@v1")" : "") + R"(]}, "library": "pypi:)" +
      (kind.ends_with("torchtitan") ? "torchtitan==0.3.0" : "transformers==5.10.2") +
      R"(", "probe": {)" + probe + "}}]" + limits + "}";
  return *MatrixFromJson(*ParseJson(text, "m.json"), "m.json");
}

TEST(PlanTest, LayoutsAreAnAxis) {
  const auto cells = *ExpandMatrix(
      OneCell("verl-torchtitan", R"("attention": "flex", "layout": ["1", "tp=2", "dp_shard=2"])"),
      {*CellFilter::Parse("layout=tp=2"), *CellFilter::Parse("ranks=1")}, Environment());
  ASSERT_EQ(cells.size(), 3);
  EXPECT_EQ(cells[0].id.find("layout"), std::string::npos);
  EXPECT_TRUE(cells[0].included && cells[1].included);
  EXPECT_TRUE(cells[1].id.ends_with(",layout=tp=2"));
  EXPECT_FALSE(cells[2].included);
}

TEST(PlanTest, ALayoutThatTheEngineKindLacksIsNotOffered) {
  const auto cells = *ExpandMatrix(OneCell("verl-fsdp", R"("attention": "sdpa", "layout": "tp=2")"),
                                   {}, Environment());
  EXPECT_TRUE(cells[0].included);
  EXPECT_EQ(cells[0].not_offered,
            "cells of verl-fsdp cannot be asked for tp, only for dp_replicate, dp_shard, ulysses");
}

TEST(PlanTest, AModelWithoutAGoldenIsUnsupportedWhateverAMatrixSays) {
  const auto planned = [](const char* kind, const char* model) {
    return ExpandMatrix(
               OneCell(kind, absl::StrCat(R"("attention": ")",
                                          absl::StrContains(kind, "titan") ? "flex" : "sdpa",
                                          R"(", "model": ")", model, "\"")),
               {}, Environment())
        ->at(0);
  };
  EXPECT_EQ(
      planned("transformers", "deepseek_v3").not_offered,
      "there is no golden of deepseek_v3 for transformers: it is torchtitan's debugmodel, whose "
      "experts are scored by softmax, and transformers' class has sigmoid only: ask for "
      "deepseek_v3_published");
  EXPECT_TRUE(planned("verl-fsdp", "deepseek_v3").is_stopped());
  EXPECT_TRUE(planned("verl-torchtitan", "qwen3_moe").is_stopped());
  EXPECT_FALSE(planned("verl-torchtitan", "deepseek_v3").is_stopped());
  EXPECT_FALSE(planned("transformers", "qwen3_moe").is_stopped());
  // The model as it was published has a golden of its own, which is not that of the flavor.
  EXPECT_FALSE(planned("transformers", "deepseek_v3_published").is_stopped());
  EXPECT_FALSE(planned("verl-fsdp", "deepseek_v3_published").is_stopped());
  EXPECT_TRUE(planned("torchtitan", "deepseek_v3_published").is_stopped());
  EXPECT_TRUE(planned("verl-torchtitan", "deepseek_v3_published").is_stopped());
}

TEST(PlanTest, AdaptersHaveNoGolden) {
  const auto planned = [](const char* options) {
    return ExpandMatrix(
               OneCell("verl-fsdp",
                       absl::StrCat(R"("attention": "sdpa", "engine_options": [)", options, "]")),
               {}, Environment())
        ->at(0);
  };
  for (const char* options : {R"({"lora_rank": 8, "target_modules": ["q_proj"]})",
                              R"({"lora_adapter_path": "a"})", R"({"lora": {"rank": 4}})"})
    EXPECT_NE(planned(options).not_offered.find("LoRA"), std::string::npos) << options;
  for (const char* options : {R"({"lora_rank": 0})", R"({"lora": {}})", R"({"lora_alpha": 32})",
                              R"({"lora": {"rank": 0}})", R"({"param_offload": true})"})
    EXPECT_EQ(planned(options).not_offered, "") << options;
}

TEST(PlanTest, ALayoutRunsInTheRuntimeThatHasWhatItNeeds) {
  const auto planned = [](const std::string& probe, const std::string& runtime,
                          const std::string& with) {
    PlanEnvironment environment = Environment();
    environment.runtime_with = [&](const std::string& asked, const std::string& package) {
      EXPECT_EQ(package, "accelerate");
      return absl::StatusOr<std::string>(asked == "rich" ? asked : with);
    };
    Matrix matrix = OneCell("transformers", R"("attention": "sdpa", )" + probe);
    if (!runtime.empty()) {
      matrix.groups[0].runtimes = {runtime};
      matrix.groups[0].names_runtimes = true;
    }
    return ExpandMatrix(matrix, {}, environment)->at(0);
  };
  const std::string lack = "tp of transformers needs accelerate, which the runtime cpu lacks";
  // Nobody named a runtime: the planner takes another one, and says so.
  PlannedCell cell = planned(R"("layout": "dp_shard=2+tp=2", "documents": [9, 8])", "", "rich");
  EXPECT_EQ(cell.cell.runtime, "rich");
  EXPECT_NE(cell.id.find("runtime=rich"), std::string::npos);
  EXPECT_EQ(cell.note, "in the runtime rich: " + lack);
  EXPECT_FALSE(cell.is_stopped());
  // Somebody did, or there is none: nothing runs.
  cell = planned(R"("layout": "tp=2")", "cpu", "rich");
  EXPECT_EQ(cell.not_offered, lack + ": ask for --runtime rich");
  cell = planned(R"("layout": "tp=2")", "", "");
  EXPECT_EQ(cell.not_offered, lack + ": write a runtime that has it in its base");
  // What needs nothing stays where it is.
  cell = planned(R"("layout": "dp_shard=2")", "", "rich");
  EXPECT_EQ(cell.cell.runtime + cell.note, "cpu");
  cell = planned(R"("layout": "tp=2")", "rich", "");
  EXPECT_EQ(cell.cell.runtime + cell.note, "rich");
}

TEST(PlanTest, AModelThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("attention": "sdpa", "checkpoint": "mxfp4")",
       "checkpoint: only gpt_oss is published in mxfp4, not qwen3"},
      {R"("attention": "sdpa", "config": {"num_key_value_heads": 3})",
       "config: num_key_value_heads of qwen3 is 3, which does not divide 16 attention heads"},
  };
  for (const auto& [probe, wanted] : cases) {
    const auto cells = ExpandMatrix(OneCell("verl-fsdp", probe, ""), {}, Environment());
    EXPECT_EQ(cells.status().message(), wanted);
  }
}

TEST(PlanTest, ALayoutThatDoesNotFitIsRefusedBeforeAnythingRuns) {
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"verl-torchtitan", R"("attention": "flex", "layout": "tp=3")", "",
       "layout tp=3: qwen3 has 16 heads and 8 key heads, which tp does not divide"},
      {"verl-torchtitan", R"("attention": "flex", "layout": "ep=2")", "",
       "layout ep=2: qwen3 has no experts: leave ep out"},
      {"verl-torchtitan", R"("attention": "flex", "layout": "pp=9")", "",
       "layout pp=9: qwen3 has 8 layers, fewer than pp"},
      {"verl-fsdp", R"("attention": "sdpa", "layout": "dp_shard=4")", "",
       "layout dp_shard=4: step 2 has 3 documents, fewer than the 4 data-parallel ranks with 1 "
       "micro-batches each need"},
      {"verl-fsdp", R"("attention": "sdpa", "layout": "dp_shard=2")",
       R"(, "limits": {"processes": 2})",
       "layout dp_shard=2: its 2 ranks and the process that watches them are more than 2 "
       "processes: raise limits.processes"},
  };
  for (const auto& [kind, probe, limits, wanted] : cases) {
    const auto cells = ExpandMatrix(OneCell(kind, probe, limits), {}, Environment());
    EXPECT_EQ(cells.status().message(), wanted);
  }
}

}  // namespace
}  // namespace bkm
