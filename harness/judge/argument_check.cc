// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/argument_check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"
#include "harness/model/dealing.h"

namespace bkm {
namespace {

// Whether calls of the backend must be read: those of a CPU's stand-ins, and on any device those
// whose arguments are borders. Nobody reads flash_attention_3's yet.
bool MustBeRead(const AttentionBackend& backend, const std::string& device) {
  return backend.told_borders ||
         (device == "cpu" && (backend.name == "flex" || backend.name == "varlen"));
}

std::string Place(const ObservedGpuDifference& difference) {
  const std::string step =
      difference.step ? absl::StrCat("step ", *difference.step + 1) : "the evidence forwards";
  if (difference.layer < 0) return absl::StrCat("in ", step);
  return absl::StrCat("in layer ", difference.layer, ", ", step);
}

CheckResult Fail(const std::vector<ObservedGpuDifference>& differences, Json evidence) {
  const ObservedGpuDifference& first = differences.front();
  Json list = Json::array();
  for (const ObservedGpuDifference& difference : differences) {
    list.push_back({{"where", Place(difference)},
                    {"argument", difference.argument},
                    {"what", difference.what},
                    {"calls", difference.calls}});
  }
  evidence["differences"] = std::move(list);
  const bool is_table = first.stand_in == "flex-cpu";
  const bool is_flash = first.stand_in == "flash_attn";
  return CheckResult::Failed(
      Stage::kMask, is_table ? reason::kBlockTable : reason::kKernelArguments,
      absl::StrCat(is_flash ? "flash_attn is not called as batch and model need it"
                            : "a GPU computes something else",
                   ", first ", Place(first), ": ", first.what),
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

// What is wrong with the calls of flash_attn's functions; nullopt where nothing is.
std::optional<CheckResult> CheckCalls(const Probe& asked, const Observation& observation,
                                      const std::vector<DocumentLengths>& documents,
                                      const Json& evidence) {
  const absl::StatusOr<ModelShape> shape = ShapeOf(asked);
  if (!shape.ok()) return CheckResult::Unreadable(Stage::kMask, shape.status());
  const NeededCalls needed = {*shape, asked.precision == "bf16" ? "bfloat16" : "", documents,
                              asked.micro_batches};
  const std::vector<ObservedGpuDifference> differences = CallDifferences(observation, needed);
  if (!differences.empty()) return Fail(differences, evidence);
  std::string unread = UnreadCalls(observation, needed);
  if (unread.empty() && documents.size() < observation.steps.size())
    unread = absl::StrCat("nobody saw whose documents step ", documents.size() + 1, " has");
  if (unread.empty()) return std::nullopt;
  return CheckResult::Unseen(
      Stage::kMask,
      absl::StrCat("with which arguments flash_attn is called was not read: ", unread), evidence);
}

// Those that a trainer dealt to the rank.
std::vector<DocumentLengths> DealtTo(const Probe& probe, const Observation& seen,
                                     const ObservedRank& rank) {
  const std::vector<int64_t> kept = KeptLengths(probe);
  std::vector<DocumentLengths> own;
  for (const ObservedStep& step : seen.steps) {
    if (rank.rank < 0 || rank.rank >= std::ssize(step.of_ranks)) break;
    DocumentLengths lengths;
    for (const int64_t document : step.of_ranks[rank.rank].documents) {
      if (document < 0 || document >= std::ssize(kept)) return own;
      lengths.push_back(kept[document]);
    }
    if (lengths.empty()) break;
    own.push_back(std::move(lengths));
  }
  return own;
}

}  // namespace

std::vector<DocumentLengths> DocumentsOf(const Probe& probe, const Observation& seen,
                                         const ObservedRank& rank,
                                         const std::vector<DocumentLengths>& of_all) {
  if (probe.drive == "trainer") return DealtTo(probe, seen, rank);
  std::vector<DocumentLengths> own;
  for (size_t step = 0; step < std::min(of_all.size(), rank.documents.size()); ++step) {
    const auto [first, count] = rank.documents[step];
    const auto size = static_cast<int64_t>(of_all[step].size());
    if (first < 0 || count < 1 || first > size || count > size - first) break;
    own.emplace_back(of_all[step].begin() + first, of_all[step].begin() + first + count);
  }
  return own;
}

CheckResult CheckArguments(const Probe& asked, const Observation& observation,
                           const std::vector<DocumentLengths>& documents) {
  Json evidence = Json::object();
  if (!observation.gpu_reads.empty()) evidence["calls_read"] = observation.gpu_reads;
  if (!observation.gpu_differences.empty())
    return Fail(observation.gpu_differences, std::move(evidence));
  const AttentionBackend* backend = AskedBackend(asked.attention);
  if (backend == nullptr || !MustBeRead(*backend, asked.device))
    return CheckResult::Passed(Stage::kMask, std::move(evidence));
  if (backend->told_borders) {
    if (auto result = CheckCalls(asked, observation, documents, evidence))
      return *std::move(result);
  }
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
  std::vector<DocumentLengths> documents = DocumentsOf(file);
  for (const ObservedRank& rank : file.seen().ranks) {
    if (rank.rank == 0) documents = DocumentsOf(file.probe(), file.seen(), rank, DocumentsOf(file));
  }
  return CheckArguments(file.probe(), file.seen(), documents);
}

}  // namespace

extern const Claim kArgumentsClaim = {
    .name = "arguments",
    .rung = Stage::kMask,
    .says = "a GPU's kernel would compute the same, and gets what batch and model need",
    .witness =
        "on a CPU: the block table of each flex call against its mask, the lengths of each "
        "varlen call, forward and backward, in each training step; on any device: borders, "
        "lengths, "
        "window, softcap, scale, dropout and type of each call of flash_attn's functions against "
        "what batch and model need",
    .cannot_see =
        "options of the GPU's kernel that have no meaning here: "
        "[harness/kernels/README.md](../harness/kernels/README.md)",
    .applies = OfFinishedCells,
    .check = CheckArgumentsOf,
};

}  // namespace bkm
