// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Observations of stopped cells, as real subjects produced them, with messages and frames
// shortened. For tests only.
#ifndef HARNESS_JUDGE_TESTING_EXCEPTIONS_H_
#define HARNESS_JUDGE_TESTING_EXCEPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

inline ObservedFrame Frame(FrameOwner owner, std::string file, std::string statement,
                           std::string text = "", std::string function = "f") {
  return {.file = std::move(file),
          .line = 7,
          .function = std::move(function),
          .owner = owner,
          .text = std::move(text),
          .statement = std::move(statement)};
}

inline ObservedException Exception(std::string type, std::string message,
                                   std::vector<ObservedFrame> frames, std::string name = "") {
  return {.type = std::move(type),
          .message = std::move(message),
          .name = std::move(name),
          .frames = std::move(frames)};
}

inline Observation Raised(Stage stage, ObservedException exception) {
  Observation observation;
  observation.ending.kind = EndingKind::kRaised;
  observation.stages = {{stage, std::nullopt}};
  observation.exceptions = {std::move(exception)};
  return observation;
}

inline Probe Asking(std::string attention) {
  Probe probe;
  probe.attention = std::move(attention);
  return probe;
}

inline const ObservedFrame kAdapterFrame =
    Frame(FrameOwner::kHarness, "bkm_cell/adapters/verl_torchtitan.py", "call");

// verl 0.7.1, asked for sdpa.
inline Observation VerlMasksSupported() {
  return Raised(
      Stage::kForward,
      Exception("TypeError", "Only varlen and flex attn masks are supported",
                {kAdapterFrame,
                 Frame(FrameOwner::kEngine, "verl/workers/engine/torchtitan/utils.py", "raise",
                       "raise TypeError(\"Only varlen and flex attn masks are supported\")")}));
}

// verl 0.9.0, asked for sdpa.
inline Observation VerlAttnTypeNotSupported() {
  return Raised(
      Stage::kConstruct,
      Exception("AssertionError",
                "attn_type sdpa not supported (sdpa is not a valid language-model backend)",
                {kAdapterFrame,
                 Frame(FrameOwner::kEngine, "verl/workers/config/engine.py", "assert",
                       "assert self.attn_type in [\"flex\", \"flex_flash\", \"varlen\"], (")}));
}

// transformers without flash-attn, asked for flash_attention_2.
inline Observation TransformersWithoutFlashAttention() {
  return Raised(
      Stage::kConstruct,
      Exception("ImportError",
                "FlashAttention2 has been toggled on, but it cannot be used due to the following "
                "error: the package for FlashAttention2 doesn't seem to be installed.",
                {Frame(FrameOwner::kLibrary, "transformers/modeling_utils.py", "raise",
                       "raise ImportError(", "PreTrainedModel._flash_attn_import_error")}));
}

// verl 0.7.1 x torchtitan baba6d82e.
inline Observation NoMatchingFlavor() {
  return Raised(
      Stage::kConstruct,
      Exception(
          "ValueError",
          "No matching torchtitan flavor found for model_type='qwen3', hidden_size=256, "
          "num_layers=8, vocab_size=2048",
          {kAdapterFrame, Frame(FrameOwner::kEngine, "verl/workers/engine/torchtitan/utils.py",
                                "raise", "raise ValueError(")}));
}

// torchtitan c1465542e on torch 2.13, varlen, with or without the engine.
inline Observation GroupedQueries(bool with_engine) {
  std::vector<ObservedFrame> frames = {kAdapterFrame};
  if (with_engine) {
    frames.push_back(
        Frame(FrameOwner::kEngine, "verl/workers/engine/torchtitan/transformer_impl.py", "call"));
  }
  frames.push_back(Frame(FrameOwner::kLibrary, "torchtitan/models/common/attention.py", "call", "",
                         "VarlenAttentionWrapper.forward"));
  frames.push_back(Frame(FrameOwner::kTorch, "torch/nn/attention/varlen.py", "raise",
                         "raise ValueError(", "varlen_attn"));
  return Raised(Stage::kMask,
                Exception("ValueError",
                          "Expect query and key/value to have the same number of heads but got "
                          "Hq=16 and Hkv=8. Try setting enable_gqa=True for GQA.",
                          frames));
}

// verl 0.9.1 x torchtitan 0.3.0.
inline Observation EngineImportsMissingLibraryModule() {
  return Raised(
      Stage::kImport,
      Exception(
          "ModuleNotFoundError", "No module named 'torchtitan.distributed.context_parallel'",
          {kAdapterFrame, Frame(FrameOwner::kPython, "<frozen importlib._bootstrap>", "other"),
           Frame(FrameOwner::kEngine, "verl/workers/engine/torchtitan/transformer_impl.py",
                 "import", "from torchtitan.distributed.context_parallel import x", "<module>")},
          "torchtitan.distributed.context_parallel"));
}

}  // namespace bkm

#endif  // HARNESS_JUDGE_TESTING_EXCEPTIONS_H_
