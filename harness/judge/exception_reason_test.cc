// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/exception_reason.h"

#include <gtest/gtest.h>

#include "harness/judge/testing_exceptions.h"

namespace bkm {
namespace {

std::string Reason(const char* type, const char* message) {
  return ReasonOf(Exception(type, message, {}));
}

TEST(ExceptionReasonTest, WordingOfPythonAndTorchDecides) {
  EXPECT_EQ(Reason("ModuleNotFoundError", "No module named 'x'"), "module-missing");
  EXPECT_EQ(Reason("ImportError", "cannot import name 'A' from 'b'"), "name-missing");
  EXPECT_EQ(Reason("ImportError", "libcudart.so.12: cannot open shared object file"),
            "import-failed");
  EXPECT_EQ(Reason("AttributeError", "'set' object has no attribute 'x'"), "attribute-missing");
  EXPECT_EQ(Reason("TypeError", "ParallelDims.__init__() got an unexpected keyword argument 'etp'"),
            "unexpected-keyword");
  EXPECT_EQ(Reason("TypeError", "f() missing 1 required positional argument: 'ep'"),
            "missing-argument");
  EXPECT_EQ(Reason("TypeError", "f() missing 2 required keyword-only arguments: 'a' and 'b'"),
            "missing-argument");
  EXPECT_EQ(Reason("TypeError", "f() takes 2 positional arguments but 3 were given"),
            "too-many-arguments");
  EXPECT_EQ(Reason("TypeError", "'set' object is not subscriptable"), "type-error");
  EXPECT_EQ(Reason("AssertionError", ""), "assertion");
  EXPECT_EQ(Reason("KeyError", "'qwen3'"), "lookup-failed");
  EXPECT_EQ(Reason("ValueError", "No matching torchtitan flavor found"), "lookup-failed");
  EXPECT_EQ(Reason("ValueError", "Expect query and key/value to have the same number of heads"),
            "value-error");
  EXPECT_EQ(Reason("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"),
            "shape-error");
  EXPECT_EQ(Reason("RuntimeError", "shape '[1, 2]' is invalid for input of size 3"), "shape-error");
  EXPECT_EQ(Reason("RuntimeError", "FlashAttention only support fp16 and bf16 data type"),
            "dtype-error");
  EXPECT_EQ(Reason("RuntimeError", "query and key must have the same dtype"), "dtype-error");
  EXPECT_EQ(Reason("RuntimeError", "expected m1 and m2 to have the same dtype, but got: float"),
            "dtype-error");
  EXPECT_EQ(Reason("RuntimeError", "boom"), "raised");
  EXPECT_EQ(Reason("NotImplementedError", ""), "not-implemented");
}

bool Refuses(const Observation& observation, const char* attention) {
  return IsRefusal(observation.exceptions[0], Asking(attention));
}

TEST(RefusalTest, RealRefusalsNameTheOptionOrWhatIsSupported) {
  EXPECT_TRUE(Refuses(VerlMasksSupported(), "sdpa"));
  EXPECT_TRUE(Refuses(VerlAttnTypeNotSupported(), "sdpa"));
  EXPECT_TRUE(Refuses(TransformersWithoutFlashAttention(), "flash_attention_2"));
}

TEST(RefusalTest, AKernelRefusesWhatWasAskedForAndNotWhatItWasGivenInstead) {
  const auto refuses = [](const char* message, const char* precision, const char* file) {
    Probe probe = Asking("flash_attention_2");
    probe.precision = precision;
    return IsRefusal(Exception("RuntimeError", message,
                               {Frame(FrameOwner::kLibrary,
                                      "transformers/modeling_flash_attention_utils.py", "call"),
                                Frame(FrameOwner::kRuntime, file, "raise")}),
                     probe);
  };
  constexpr char kOurs[] = "flash_attn/dense_attention.py";
  constexpr char kTypes[] = "FlashAttention only support fp16 and bf16 data type";
  EXPECT_TRUE(refuses(kTypes, "fp32", kOurs));
  EXPECT_FALSE(refuses(kTypes, "bf16", kOurs)) << "somebody made fp32 of it";
  EXPECT_TRUE(
      refuses("FlashAttention forward only supports head dimension at most 256", "bf16", kOurs));
  EXPECT_FALSE(refuses("cu_seqlens_q must have dtype int32", "bf16", kOurs));
  EXPECT_FALSE(refuses(kTypes, "fp32", "other/flash_attn.py"));
}

TEST(RefusalTest, AnOptionInTheNameOfAFolderIsNotNamed) {
  const auto refuses = [](const char* message) {
    return IsRefusal(Exception("FileNotFoundError", message,
                               {Frame(FrameOwner::kLibrary, "torchtitan/checkpoint.py", "raise")}),
                     Asking("flex"));
  };
  EXPECT_FALSE(refuses("load_step=1 not found because /runs/a-flex-1/cwd/x does not exist"));
  EXPECT_TRUE(refuses("flex is not supported with /runs/a-flex-1/cwd/x"));
}

TEST(RefusalTest, MessageThatNamesNoOptionIsNoRefusal) {
  EXPECT_FALSE(Refuses(NoMatchingFlavor(), "flex"));
  EXPECT_FALSE(Refuses(TransformersWithoutFlashAttention(), "sdpa"));
}

TEST(RefusalTest, ListThatHoldsTheAskedOptionContradictsItself) {
  EXPECT_FALSE(Refuses(VerlMasksSupported(), "flex"));
  EXPECT_TRUE(ContradictsTheProbe(VerlMasksSupported().exceptions[0], Asking("flex")));
  EXPECT_FALSE(ContradictsTheProbe(VerlMasksSupported().exceptions[0], Asking("sdpa")));
}

TEST(RefusalTest, OnlyDeliberateStatementsOfThePartiesRefuse) {
  EXPECT_FALSE(Refuses(GroupedQueries(true), "varlen"));
  Observation called = VerlAttnTypeNotSupported();
  called.exceptions[0].frames.back().statement = "call";
  EXPECT_FALSE(Refuses(called, "sdpa"));
}

TEST(RefusalTest, AssertionAboutTypesIsNoRefusal) {
  const ObservedException exception =
      Exception("AssertionError", "varlen needs VarlenMetadata but got <class 'NoneType'>",
                {Frame(FrameOwner::kLibrary, "torchtitan/models/common/attention.py", "assert",
                       "assert isinstance(")});
  EXPECT_FALSE(IsRefusal(exception, Asking("varlen")));
}

TEST(RefusalTest, LibraryThatNamesTheUnsupportedOptionRefuses) {
  const ObservedException exception =
      Exception("ValueError",
                "ScaledDotProductAttention does not support attention_masks; it only supports "
                "causal/non-causal attention via is_causal.",
                {Frame(FrameOwner::kLibrary, "torchtitan/models/common/attention.py", "raise",
                       "raise ValueError(")});
  EXPECT_TRUE(IsRefusal(exception, Asking("sdpa")));
  EXPECT_FALSE(IsRefusal(exception, Asking("flex")));
}

TEST(RefusalTest, EngineOptionThatIsNamedIsRefused) {
  Probe probe = Asking("flex");
  const ObservedException exception =
      Exception("AssertionError", "spmd_backend foo not supported",
                {Frame(FrameOwner::kEngine, "verl/workers/config/engine.py", "assert",
                       "assert self.spmd_backend in [")});
  EXPECT_FALSE(IsRefusal(exception, probe));
  probe.engine_options["spmd_backend"] = "\"foo\"";
  EXPECT_TRUE(IsRefusal(exception, probe));
}

TEST(RefusalTest, ParallelismThatIsDeniedIsRefusedUnderAnyOfItsNames) {
  const auto refuses = [](const char* message, const char* layout) {
    Probe probe = Asking("flex");
    probe.layout = *ParseLayout(layout);
    return IsRefusal(
        Exception("NotImplementedError", message,
                  {Frame(FrameOwner::kLibrary, "torchtitan/models/qwen3/parallelize.py", "raise",
                         "raise NotImplementedError(")}),
        probe);
  };
  for (const char* message :
       {"CP support is only supported for SDPA.", "CP is not yet supported here",
        "varlen (with cp_size > 1) is not supported",
        "Context Parallel only supports SDPA attention. Got attn_type='flex'."})
    EXPECT_TRUE(refuses(message, "cp=2")) << message;
  EXPECT_FALSE(refuses("CP support is only supported for SDPA.", "tp=2"));
  EXPECT_FALSE(refuses("the recipe cannot be read", "cp=2"));
  EXPECT_TRUE(refuses("weight tying is not supported with PP", "pp=2"));
  for (const char* defect : {"cp_mesh cannot be None", "the cpu cannot do this"})
    EXPECT_FALSE(refuses(defect, "cp=2")) << defect;
}

TEST(RefusalTest, OptionsThatExcludeEachOtherAreRefused) {
  const auto refuses = [](const char* message, const char* layout, const char* input = "packed",
                          const char* type = "ValueError") {
    Probe probe = Asking("sdpa");
    probe.layout = *ParseLayout(layout);
    probe.input = input;
    return IsRefusal(
        Exception(type, message,
                  {Frame(FrameOwner::kEngine, "verl/workers/engine/fsdp/transformer_impl.py",
                         "raise", "raise ValueError(")}),
        probe);
  };
  // verl 0.8.0.
  const char* kExclusive =
      "When using sequence parallelism (ulysses_sequence_parallel_size > 1), you must enable "
      "`use_remove_padding`.";
  EXPECT_TRUE(refuses(kExclusive, "ulysses=2", "padded"));
  EXPECT_TRUE(refuses(kExclusive, "1", "padded"));
  EXPECT_FALSE(refuses(kExclusive, "1")) << "neither was asked for";
  EXPECT_TRUE(refuses("num_key_value_heads 3 must be divisible by ulysses_sp_size 2", "ulysses=2"));
  EXPECT_TRUE(refuses("Tensor parallelism and expert parallelism are mutually exclusive", "tp=2"));
  EXPECT_TRUE(refuses("use_remove_padding=False conflicts with fused kernels", "1", "padded"));
  // A defect that speaks of the same things is none.
  EXPECT_FALSE(refuses("fsdp wrap policy got None", "dp_shard=2"));
  EXPECT_FALSE(
      refuses("shard 1 of the padded batch has 3 rows, expected 4", "dp_shard=2", "padded"));
}

TEST(RefusalTest, AListOfWhatIsSupportedEndsWithItsSentence) {
  Probe probe = Asking("varlen");
  probe.layout = *ParseLayout("cp=2");
  const ObservedException exception =
      Exception("NotImplementedError",
                "Context Parallel only supports SDPA and FlexAttention. Varlen attention is not "
                "supported with CP.",
                {Frame(FrameOwner::kLibrary, "torchtitan/models/qwen3/model.py", "raise",
                       "raise NotImplementedError(")});
  EXPECT_FALSE(ContradictsTheProbe(exception, probe));
  EXPECT_TRUE(IsRefusal(exception, probe));
  EXPECT_TRUE(ContradictsTheProbe(exception, Asking("flex")));
}

TEST(HardwareTest, OnlyCellsOfACpuNeedOtherHardware) {
  const ObservedException exception = Exception(
      "ValueError", "Flash backend of FlexAttention is only supported on Hopper or Blackwell", {});
  Probe probe = Asking("flex");
  EXPECT_TRUE(NeedsOtherHardware(exception, probe));
  EXPECT_FALSE(NeedsOtherHardware(NoMatchingFlavor().exceptions[0], probe));
  probe.device = "cuda";
  EXPECT_FALSE(NeedsOtherHardware(exception, probe));
}

TEST(HardwareTest, OnlySentencesThatDenyTheCpuOrDemandAGpuCount) {
  const Probe probe = Asking("flex");
  const auto needs = [&](const char* message) {
    return NeedsOtherHardware(Exception("RuntimeError", message, {}), probe);
  };
  EXPECT_TRUE(needs("Attention sinks cannot be run on CPU with flex attention. Please switch"));
  EXPECT_TRUE(
      needs("OffsetBasedRNGTracker instantiation requires the presence of CUDA/XPU device"));
  EXPECT_TRUE(needs("Could not run 'aten::_x' with arguments from the 'CPU' backend."));
  EXPECT_TRUE(needs("This kernel isn't implemented for CPU"));
  EXPECT_TRUE(needs("varlen is only supported on GPU"));
  EXPECT_FALSE(needs("Expected all tensors to be on the same device, but found cuda:0 and cpu!"));
  EXPECT_FALSE(needs("The mask is on CPU. It does not have the asked shape"));
  EXPECT_FALSE(needs("sdpa is no longer supported for language models"));
  EXPECT_FALSE(needs("cannot import name 'cuda_graph'"));
}

}  // namespace
}  // namespace bkm
