// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutant_outcome.h"

#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/judge/cell_files.h"

namespace bkm {
namespace {

Json NumberOf(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json NumbersOf(const ObservedTensor& tensor) { return {tensor.norm, tensor.sum, tensor.numel}; }

// A hash of each tensor of a file; of none if no file was written.
absl::StatusOr<Json> DigestsOf(const std::filesystem::path& cell_dir, const std::string& name) {
  Json digests = Json::object();
  if (name.empty()) return digests;
  ASSIGN_OR_RETURN(const SafetensorsFile file, OpenCellTensors(cell_dir, name));
  for (const auto& [key, view] : file.tensors())
    digests[key] = Sha256(absl::StrCat(NameOf(view.type), " ", view.bytes));
  return digests;
}

}  // namespace

void Describe(Fields& fields, Mutant& mutant) {
  Mutation& mutation = mutant.mutation;
  fields.Name("party", mutation.party, kPartyNames);
  fields.Field("file", mutation.file);
  fields.Field("line", mutation.line);
  fields.Field("function", mutation.function);
  fields.Field("operator", mutation.operation);
  fields.Field("ran_in_training", mutation.trained);
  fields.Field("diff", mutant.diff);
  fields.Name("outcome", mutant.outcome, kMutantOutcomeNames);
  fields.Field("verdict", mutant.verdict);
  fields.Field("message", mutant.message);
  fields.Field("cell", mutant.cell);
}

absl::StatusOr<std::string> NumbersDigest(const Observation& observation,
                                          const std::filesystem::path& cell_dir) {
  Json numbers = {{"load", Json::object()}, {"steps", Json::array()}};
  for (const auto& [name, tensor] : observation.load) numbers["load"][name] = NumbersOf(tensor);
  if (observation.held) numbers["held"] = NumbersOf(*observation.held);
  if (observation.forward_only) {
    ASSIGN_OR_RETURN(numbers["forward_only"],
                     DigestsOf(cell_dir, observation.forward_only->tensors));
  }
  for (const ObservedStep& step : observation.steps) {
    ASSIGN_OR_RETURN(Json tensors, DigestsOf(cell_dir, step.tensors));
    numbers["steps"].push_back({NumberOf(step.loss), NumberOf(step.grad_norm),
                                NumberOf(step.learning_rate), std::move(tensors)});
  }
  // NaN and infinity become null: they differ from every number.
  return Sha256(numbers.dump());
}

absl::StatusOr<MutantOutcome> OutcomeOf(const CellRecord& record, const Observation* observation,
                                        const std::filesystem::path& cell_dir,
                                        const std::string& plain) {
  if (!record.verdict || observation == nullptr) return MutantOutcome::kUnmeasured;
  const VerdictKind kind = record.verdict->kind;
  if (!SaysSomething(*record.verdict)) return MutantOutcome::kUnmeasured;
  if (observation->ending.kind != EndingKind::kCompleted ||
      (kind != VerdictKind::kOk && kind != VerdictKind::kWrong))
    return MutantOutcome::kCrashed;
  ASSIGN_OR_RETURN(const std::string digest, NumbersDigest(*observation, cell_dir));
  if (digest == plain) return MutantOutcome::kIdentical;
  return kind == VerdictKind::kOk ? MutantOutcome::kSurvived : MutantOutcome::kKilled;
}

}  // namespace bkm
