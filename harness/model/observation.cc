// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/observation.h"

#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 13> kEndingKinds = {
    "completed",      "raised",         "exited",   "signalled",   "timed-out",
    "limit",          "cancelled",      "lost",     "fork-failed", "no-solution",
    "install-failed", "device-missing", "api-check"};
constexpr std::array<absl::string_view, 6> kOwners = {"engine",  "library", "torch",
                                                      "runtime", "python",  "harness"};

}  // namespace

absl::string_view Name(EndingKind kind) { return kEndingKinds[static_cast<size_t>(kind)]; }
absl::string_view Name(FrameOwner owner) { return kOwners[static_cast<size_t>(owner)]; }

Stage Observation::LastStage() const {
  return stages.empty() ? Stage::kImport : stages.back().stage;
}

void Describe(Fields& fields, ObservedEnding& ending) {
  fields.Name("kind", ending.kind, kEndingKinds);
  fields.Field("code", ending.code);
  fields.Field("signal", ending.signal);
  fields.Field("limit", ending.limit);
  fields.Field("from_outside", ending.from_outside);
  fields.Field("message", ending.message);
}

void Describe(Fields& fields, ObservedStage& stage) {
  std::string name(Name(stage.stage));
  if (fields.reading()) name.clear();
  fields.Field("stage", name);
  const std::optional<Stage> known = StageFromName(name);
  if (!known) return fields.Fail("stage", absl::StrCat("unknown stage '", name, "'"));
  stage.stage = *known;
  fields.Field("seconds", stage.seconds);
}

void Describe(Fields& fields, ObservedFrame& frame) {
  fields.Field("file", frame.file);
  fields.Field("line", frame.line);
  fields.Field("function", frame.function);
  fields.Name("owner", frame.owner, kOwners);
  fields.Field("text", frame.text);
  fields.Field("statement", frame.statement);
}

// Each exception is the cause of the one before it, and in JSON lies inside it; the worker bounds
// how many there are.
void DescribeChain(Fields& fields, std::vector<ObservedException>& chain, size_t i) {
  fields.Field("type", chain[i].type);
  fields.Field("message", chain[i].message);
  fields.Field("name", chain[i].name);
  fields.Field("object", chain[i].object);
  fields.Field("frames", chain[i].frames);
  if (fields.reading() ? fields.IsNull("cause") : i + 1 == chain.size()) return;
  if (fields.reading()) chain.emplace_back();
  fields.Group("cause", [&](Fields& cause) { DescribeChain(cause, chain, i + 1); });
}

void Describe(Fields& fields, ObservedLayer& layer) {
  fields.Field("layer", layer.layer);
  fields.Field("class", layer.class_name);
  fields.Field("module", layer.module);
}

struct ObservedCallable {
  std::string callable;
};

void Describe(Fields& fields, ObservedCallable& call) { fields.Field("callable", call.callable); }

void DescribeCalled(Fields& fields, std::vector<std::string>& called) {
  std::vector<ObservedCallable> calls;
  for (const std::string& callable : called) calls.push_back({callable});
  fields.Field("called", calls);
  if (!fields.reading()) return;
  for (const ObservedCallable& call : calls) called.push_back(call.callable);
}

void Describe(Fields& fields, ObservedKernels& kernels) {
  fields.Field("layer", kernels.layer);
  fields.Field("forward", kernels.forward);
  fields.Field("backward", kernels.backward);
}

void Describe(Fields& fields, ObservedMaskCall& call) {
  fields.Field("layer", call.layer);
  fields.Field("type", call.type);
  fields.Field("digest", call.digest);
  fields.Field("pairs", call.pairs);
  fields.Field("owner", call.owner);
}

void Describe(Fields& fields, ObservedReach& reach) {
  fields.Field("position", reach.position);
  fields.Field("moved", reach.moved);
  fields.Field("largest", reach.largest);
}

void Describe(Fields& fields, ObservedRelation& relation) {
  fields.Field("layer", relation.layer);
  fields.Field("relation", relation.relation);
}

void Describe(Fields& fields, ObservedTensor& tensor) {
  fields.Field("norm", tensor.norm);
  fields.Field("sum", tensor.sum);
  fields.Field("numel", tensor.numel);
}

void Describe(Fields& fields, ObservedParamGroup& group) {
  fields.Field("lr", group.learning_rate);
  std::vector<double> betas = {group.beta1, group.beta2};
  if (fields.reading()) betas.clear();
  fields.Field("betas", betas);
  if (betas.size() == 2) {
    group.beta1 = betas[0];
    group.beta2 = betas[1];
  }
  fields.Field("eps", group.epsilon);
  fields.Field("weight_decay", group.weight_decay);
}

void Describe(Fields& fields, ObservedStep& step) {
  fields.Field("loss", step.loss);
  fields.Field("grad_norm", step.grad_norm);
  fields.Field("forwards", step.forwards);
  fields.Field("learning_rate", step.learning_rate);
  fields.Field("tensors", step.tensors);
  fields.Field("log_probs_dtype", step.log_probs_dtype);
  fields.Group("optimizer", [&](Fields& optimizer) {
    optimizer.Field("class", step.optimizer_class);
    optimizer.Field("param_groups", step.param_groups);
  });
}

void Describe(Fields& fields, Observation& observation) {
  Observation& o = observation;
  fields.Field("ending", o.ending);
  fields.Field("stages", o.stages);
  if (fields.reading() ? !fields.IsNull("exception") : !o.exceptions.empty()) {
    if (fields.reading()) o.exceptions.emplace_back();
    fields.Group("exception", [&](Fields& chain) { DescribeChain(chain, o.exceptions, 0); });
  }
  fields.Field("plant", o.plant);
  fields.Group("adapter",
               [&](Fields& adapter) { adapter.Field("precision_ran", o.precision_ran); });
  fields.Group("backend", [&](Fields& backend) {
    backend.Field("layers", o.layers);
    DescribeCalled(backend, o.called);
    backend.Field("configured", o.configured);
    backend.Field("ops", o.ops);
    backend.Field("kernels", o.kernels);
  });
  fields.Field("load", o.load);
  fields.Field("held", o.held);
  fields.Group("mask", [&](Fields& mask) {
    mask.Field("calls", o.mask_calls);
    mask.Field("reach", o.reach);
    mask.Field("reaches", o.more_reaches);
    mask.Field("attended", o.attended);
    mask.Field("attended_error", o.attended_error);
  });
  fields.Field("steps", o.steps);
  fields.Field("timeouts", o.timeouts);
}

absl::StatusOr<Observation> ObservationFromJson(const Json& json, const std::string& origin) {
  return ReadFields<Observation>(json, origin, FieldStyle::kSparse);
}

OrderedJson ToJson(const Observation& observation) {
  return WriteFields(observation, FieldStyle::kSparse);
}

}  // namespace bkm
