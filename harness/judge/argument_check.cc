// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/argument_check.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

// Whether a stand-in computes the asked attention on this device.
bool HasStandIn(const Probe& asked, const Observation& observation) {
  const AttentionBackend* backend = AskedBackend(asked.attention);
  return !observation.stand_ins.empty() || (asked.device == "cpu" && backend != nullptr &&
                                            (backend->name == "flex" || backend->name == "varlen"));
}

std::string Place(const ObservedGpuDifference& difference) {
  const std::string step =
      difference.step ? absl::StrCat("step ", *difference.step + 1) : "the evidence forwards";
  if (difference.layer < 0) return absl::StrCat("in ", step);
  return absl::StrCat("in layer ", difference.layer, ", ", step);
}

CheckResult Fail(const Observation& observation, Json evidence) {
  const ObservedGpuDifference& first = observation.gpu_differences.front();
  std::set<int64_t> layers;
  Json list = Json::array();
  for (const ObservedGpuDifference& difference : observation.gpu_differences) {
    layers.insert(difference.layer);
    list.push_back({{"where", Place(difference)},
                    {"argument", difference.argument},
                    {"what", difference.what},
                    {"calls", difference.calls}});
  }
  evidence["differences"] = std::move(list);
  const bool is_table = first.stand_in == "flex-cpu";
  return CheckResult::Failed(
      Stage::kMask, is_table ? reason::kBlockTable : reason::kKernelArguments,
      absl::StrCat("a GPU computes something else, first ", Place(first), ": ", first.what),
      std::move(evidence));
}

// How often the layers called their attention in the forward passes of one step. Checkpointing
// calls a layer again in the backward pass, and may take the kernel's result from the first time.
int64_t CallsOf(const Observation& observation, size_t step) {
  std::set<int64_t> layers;
  for (const ObservedKernels& kernels : observation.kernels) {
    if (step < kernels.calls.size() && kernels.calls[step] > 0) layers.insert(kernels.layer);
  }
  return static_cast<int64_t>(layers.size()) * observation.steps[step].forwards.value_or(1);
}

}  // namespace

CheckResult CheckArguments(const Probe& asked, const Observation& observation) {
  Json evidence = Json::object();
  if (!observation.gpu_reads.empty()) evidence["calls_read"] = observation.gpu_reads;
  if (!observation.gpu_differences.empty()) return Fail(observation, std::move(evidence));
  if (!HasStandIn(asked, observation))
    return CheckResult::Passed(Stage::kMask, std::move(evidence));
  for (size_t step = 0; step < observation.steps.size(); ++step) {
    const int64_t read = step < observation.gpu_reads.size() ? observation.gpu_reads[step] : 0;
    const int64_t calls = CallsOf(observation, step);
    if (read > 0 && read >= calls) continue;
    return CheckResult::Unseen(Stage::kMask,
                               absl::StrCat("what a GPU would read was compared in ", read, " of ",
                                            calls, " attention calls of step ", step + 1),
                               std::move(evidence));
  }
  return CheckResult::Passed(Stage::kMask, std::move(evidence));
}

namespace {

CheckResult CheckArgumentsOf(const CaseFile& file) {
  return CheckArguments(file.probe(), file.seen());
}

}  // namespace

extern const Claim kArgumentsClaim = {
    .name = "arguments",
    .rung = Stage::kMask,
    .says = "a GPU's kernel would compute the same",
    .witness =
        "on a CPU: the block table of each flex call against its mask, the lengths of each "
        "varlen call, forward and backward, and the longest length of each call of flash_attn's "
        "stand-in, in each training step",
    .cannot_see =
        "options of the GPU's kernel that have no meaning here: "
        "[harness/kernels/README.md](../harness/kernels/README.md)",
    .applies = OfFinishedCells,
    .check = CheckArgumentsOf,
};

}  // namespace bkm
