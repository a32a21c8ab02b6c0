// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/observation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/model/layout.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 6> kOwners = {"engine",  "library", "torch",
                                                      "runtime", "python",  "harness"};

// Far above what a real cell reports. The bounds limit the work of the checks and the size of what
// is shown of a cell.
constexpr size_t kMostSteps = 10'000;
constexpr size_t kMostParamGroups = 64;
constexpr size_t kMostDocuments = 100'000;  // of a step
constexpr size_t kMostLayers = 10'000;      // also of what is reported per layer
constexpr size_t kMostMaskCalls = 200'000;
constexpr size_t kMostFrames = 2'000;
constexpr size_t kLongestText = 1'000'000;
constexpr size_t kLongestName = 10'000;

absl::Status OutOfBounds(const std::string& origin, absl::string_view path,
                         absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", path, ": ", what));
}

// Files of steps lie in tensors/ and have plain names.
bool IsPlainTensorFile(absl::string_view file) {
  if (!absl::ConsumePrefix(&file, "tensors/") || file.empty() || file[0] == '.') return false;
  return file.size() <= 100 && std::all_of(file.begin(), file.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

absl::Status CheckExceptions(const Observation& observation, const std::string& origin) {
  std::string path = "$.exception";
  for (const ObservedException& exception : observation.exceptions) {
    if (exception.frames.size() > kMostFrames)
      return OutOfBounds(origin, path + ".frames", absl::StrCat("more than ", kMostFrames));
    if (exception.message.size() > kLongestText)
      return OutOfBounds(origin, path + ".message", "it is too long");
    bool fits = std::max({exception.type.size(), exception.name.size(), exception.object.size(),
                          exception.imported_by.size()}) <= kLongestName;
    for (const ObservedFrame& frame : exception.frames) {
      fits = fits && std::max({frame.file.size(), frame.function.size(), frame.text.size(),
                               frame.statement.size()}) <= kLongestName;
    }
    if (!fits) return OutOfBounds(origin, path, "a name in it is too long");
    path += ".cause";
  }
  return absl::OkStatus();
}

// `files`: the names that are taken.
absl::Status CheckSteps(const std::vector<ObservedStep>& steps, absl::string_view list,
                        const std::string& origin, std::set<absl::string_view>& files) {
  for (size_t k = 0; k < steps.size(); ++k) {
    const ObservedStep& step = steps[k];
    const std::string path = absl::StrCat(list, "[", k, "]");
    if (!step.tensors.empty() && !IsPlainTensorFile(step.tensors))
      return OutOfBounds(origin, path + ".tensors", "a plain name below tensors/ is needed here");
    if (!step.tensors.empty() && !files.insert(step.tensors).second)
      return OutOfBounds(origin, path + ".tensors", "two steps name one file");
    if (step.attended.size() > kMostLayers)
      return OutOfBounds(origin, path + ".attended",
                         absl::StrCat("more than ", kMostLayers, " items"));
    if (step.documents.size() > kMostDocuments)
      return OutOfBounds(origin, path + ".documents",
                         absl::StrCat("more than ", kMostDocuments, " items"));
    if (step.param_groups.size() > kMostParamGroups)
      return OutOfBounds(origin, path + ".optimizer.param_groups",
                         absl::StrCat("more than ", kMostParamGroups, " groups"));
  }
  return absl::OkStatus();
}

// The rules for an observation beyond the types of its fields.
absl::Status CheckBounds(const Observation& observation, const std::string& origin) {
  const struct {
    const char* path;
    size_t size, most;
  } lists[] = {{"$.stages", observation.stages.size(), kMostSteps * 3},
               {"$.steps", observation.steps.size(), kMostSteps},
               {"$.resumed", observation.resumed.size(), kMostSteps},
               {"$.backend.layers", observation.layers.size(), kMostLayers},
               {"$.backend.called", observation.called.size(), kMostLayers},
               {"$.backend.kernels", observation.kernels.size(), kMostLayers},
               {"$.model.norms", observation.model.norms.size(), kMostLayers},
               {"$.model.norm_epsilons", observation.model.norm_epsilons.size(), kMostLayers},
               {"$.model.rope_frequencies", observation.model.rope_frequencies.size(), kMostLayers},
               {"$.backend.gpu_reads", observation.gpu_reads.size(), kMostSteps},
               {"$.backend.gpu_differences", observation.gpu_differences.size(), kMostLayers},
               {"$.backend.kernel_calls", observation.kernel_calls.size(), kMostLayers},
               {"$.mask.attended", observation.attended.size(), kMostLayers},
               {"$.ranks", observation.ranks.size(), size_t{kMostRanks}},
               {"$.rank_differences", observation.rank_differences.size(), kMostLayers},
               {"$.mask.reaches", observation.more_reaches.size(), kMostLayers},
               {"$.mask.calls", observation.mask_calls.size(), kMostMaskCalls}};
  for (const auto& list : lists) {
    if (list.size > list.most)
      return OutOfBounds(origin, list.path, absl::StrCat("more than ", list.most, " items"));
  }
  RETURN_IF_ERROR(CheckExceptions(observation, origin));
  // The precision names the file of the floor that the cell is judged by.
  const std::string& ran = observation.precision_ran;
  if (ran.size() > 32 || !std::all_of(ran.begin(), ran.end(), absl::ascii_isalnum))
    return OutOfBounds(origin, "$.adapter.precision_ran", "a plain name is needed here");
  std::set<absl::string_view> files;
  const auto add_forward = [&](const std::optional<ObservedForward>& forward, const char* path) {
    if (!forward) return absl::OkStatus();
    files.insert(forward->tensors);
    if (IsPlainTensorFile(forward->tensors)) return absl::OkStatus();
    return OutOfBounds(origin, path, "a plain name below tensors/ is needed here");
  };
  RETURN_IF_ERROR(add_forward(observation.forward_only, "$.forward_only.tensors"));
  RETURN_IF_ERROR(add_forward(observation.forward_in_fp32, "$.forward_in_fp32.tensors"));
  if (observation.exported) {
    files.insert(observation.exported->tensors);
    if (!IsPlainTensorFile(observation.exported->tensors))
      return OutOfBounds(origin, "$.export.tensors", "a plain name below tensors/ is needed here");
  }
  RETURN_IF_ERROR(CheckSteps(observation.steps, "$.steps", origin, files));
  return CheckSteps(observation.resumed, "$.resumed", origin, files);
}

}  // namespace

absl::string_view Name(FrameOwner owner) { return kOwners[static_cast<size_t>(owner)]; }

Stage Observation::LastStage() const {
  return stages.empty() ? Stage::kImport : stages.back().stage;
}

bool Observation::SaysNothing() const {
  const bool timed_out_once = ending.kind == EndingKind::kTimedOut && timeouts < 2;
  return ending.from_outside || ending.is_lost() || ending.kind == EndingKind::kCancelled ||
         timed_out_once;
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
  fields.Field("module", chain[i].module);
  fields.Field("message", chain[i].message);
  fields.Field("name", chain[i].name);
  fields.Field("object", chain[i].object);
  fields.Field("imported_by", chain[i].imported_by);
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

void Describe(Fields& fields, ObservedNorm& norm) {
  fields.Field("name", norm.name);
  fields.Field("epsilon", norm.epsilon);
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
  fields.Field("calls", kernels.calls);
  fields.Field("precision", kernels.precision);
}

void Describe(Fields& fields, ObservedGpuDifference& difference) {
  fields.Field("stand_in", difference.stand_in);
  fields.Field("layer", difference.layer);
  fields.Field("step", difference.step);
  fields.Field("argument", difference.argument);
  fields.Field("what", difference.what);
  fields.Field("calls", difference.calls);
}

void Describe(Fields& fields, ObservedKernelCalls& calls) {
  fields.Field("layers", calls.layers);
  fields.Field("calls", calls.calls);
  fields.Field("step", calls.step);
  fields.Field("dtype", calls.dtype);
  fields.Field("q", calls.query_shape);
  fields.Field("k", calls.key_shape);
  fields.Field("cu_seqlens_q", calls.query_borders);
  fields.Field("cu_seqlens_k", calls.key_borders);
  fields.Field("max_seqlen_q", calls.longest_query);
  fields.Field("max_seqlen_k", calls.longest_key);
  fields.Field("causal", calls.causal);
  fields.Field("window", calls.window);
  fields.Field("softcap", calls.softcap);
  fields.Field("scale", calls.scale);
  fields.Field("dropout", calls.dropout);
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

void Describe(Fields& fields, ObservedMachine& machine) {
  fields.Field("disk_full", machine.disk_full);
  fields.Field("memory_short", machine.memory_short);
}

void Describe(Fields& fields, ObservedTensor& tensor) {
  fields.Field("norm", tensor.norm);
  fields.Field("sum", tensor.sum);
  fields.Field("numel", tensor.numel);
}

// The form of an observation's "load" alone.
struct LoadedTensors {
  std::map<std::string, ObservedTensor> load;
};

void Describe(Fields& fields, LoadedTensors& tensors) { fields.Field("load", tensors.load); }

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

void Describe(Fields& fields, ObservedForward& forward) {
  fields.Field("tensors", forward.tensors);
  fields.Field("log_probs_dtype", forward.log_probs_dtype);
  fields.Field("entropy_dtype", forward.entropy_dtype);
}

void Describe(Fields& fields, ObservedWeight& weight) {
  fields.Field("dtype", weight.dtype);
  fields.Field("shape", weight.shape);
  fields.Field("norm", weight.norm);
}

void Describe(Fields& fields, ObservedExport& exported) {
  fields.Field("weights", exported.weights);
  fields.Field("tensors", exported.tensors);
  fields.Field("missing", exported.missing);
  fields.Field("unexpected", exported.unexpected);
}

// `configured`: the field of that name, if there is one.
void DescribeBackend(Fields& fields, ObservedBackend& seen, std::string* configured) {
  fields.Group("backend", [&](Fields& backend) {
    backend.Field("layers", seen.layers);
    DescribeCalled(backend, seen.called);
    if (configured != nullptr) backend.Field("configured", *configured);
    backend.Field("ops", seen.ops);
    backend.Field("kernels", seen.kernels);
    backend.Field("gpu_reads", seen.gpu_reads);
    backend.Field("gpu_differences", seen.gpu_differences);
    backend.Field("kernel_calls", seen.kernel_calls);
  });
}

void Describe(Fields& fields, ObservedCollective& collective) {
  fields.Field("op", collective.op);
  fields.Field("reduce", collective.reduce);
  fields.Field("ranks", collective.ranks);
  fields.Field("dtype", collective.dtype);
  fields.Field("stage", collective.stage);
  fields.Field("calls", collective.calls);
  fields.Field("elements", collective.elements);
}

void Describe(Fields& fields, ObservedPart& part) {
  fields.Field("parameters", part.parameters);
  fields.Field("of_parameters", part.of_parameters);
  fields.Field("tokens", part.tokens);
  fields.Field("of_tokens", part.of_tokens);
}

void Describe(Fields& fields, ObservedRank& rank) {
  fields.Field("rank", rank.rank);
  fields.Field("stage", rank.stage);
  fields.Field("ended", rank.ended);
  fields.Field("waits", rank.waits);
  fields.Field("exception", rank.exception);
  fields.Field("data_rank", rank.data_rank);
  fields.Field("data_ranks", rank.data_ranks);
  fields.Field("documents", rank.documents);
  fields.Field("precision_ran", rank.precision_ran);
  fields.Field("part", rank.part);
  fields.Field("collectives", rank.collectives);
  DescribeBackend(fields, rank, nullptr);
}

void Describe(Fields& fields, ObservedRankDifference& difference) {
  fields.Field("when", difference.when);
  fields.Field("name", difference.name);
  fields.Field("rank", difference.rank);
  fields.Field("largest", difference.largest);
}

void Describe(Fields& fields, ObservedShare& share) {
  fields.Field("first", share.first);
  fields.Field("count", share.count);
}

void Describe(Fields& fields, ObservedRankStep& step) {
  fields.Field("forwards", step.forwards);
  fields.Field("attention_nodes", step.attention_nodes);
  fields.Field("documents", step.documents);
}

void Describe(Fields& fields, ObservedExperts& experts) {
  fields.Field("layer", experts.layer);
  fields.Field("coefficient", experts.coefficient);
  fields.Field("tokens", experts.tokens);
  fields.Field("moved", experts.moved);
}

void Describe(Fields& fields, ObservedStep& step) {
  fields.Field("loss", step.loss);
  fields.Field("loss_decimals", step.loss_decimals);
  fields.Field("grad_norm", step.grad_norm);
  fields.Field("norm_error", step.norm_error);
  fields.Field("forwards", step.forwards);
  fields.Field("documents", step.documents);
  fields.Field("experts", step.experts, Presence::kOmitted);
  fields.Field("attention_nodes", step.attention_nodes);
  fields.Field("products", step.products);
  fields.Field("attended", step.attended);
  fields.Field("attended_error", step.attended_error);
  fields.Field("of_ranks", step.of_ranks);
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
  fields.Field("stand_ins", o.stand_ins, Presence::kOmitted);
  fields.Field("stand_ins_hide", o.stand_ins_hide, Presence::kOmitted);
  fields.Group("adapter", [&](Fields& adapter) {
    adapter.Field("precision_ran", o.precision_ran);
    adapter.Field("not_asked", o.not_asked);
    adapter.Field("sharding_asked", o.sharding_asked);
    adapter.Field("sharding", o.sharding);
  });
  DescribeBackend(fields, o, &o.configured);
  fields.Field("load", o.load);
  fields.Field("held", o.held);
  fields.Field("load_buffers", o.load_buffers);
  fields.Group("mask", [&](Fields& mask) {
    mask.Field("calls", o.mask_calls);
    mask.Field("reach", o.reach);
    mask.Field("reaches", o.more_reaches);
    mask.Field("attended", o.attended);
    mask.Field("attended_error", o.attended_error);
  });
  fields.Group("model", [&](Fields& model) {
    model.Field("norms", o.model.norms);
    model.Field("norm_epsilons", o.model.norm_epsilons);
    model.Field("rope_theta", o.model.rope_theta);
    model.Field("rope_frequencies", o.model.rope_frequencies);
  });
  fields.Field("forward_only", o.forward_only);
  fields.Field("forward_in_fp32", o.forward_in_fp32, Presence::kOmitted);
  fields.Field("forward_in_fp32_error", o.forward_in_fp32_error, Presence::kOmitted);
  fields.Field("steps", o.steps);
  fields.Field("export", o.exported);
  fields.Field("checkpoint_files", o.checkpoint_files);
  fields.Field("resumed", o.resumed);
  fields.Field("ranks", o.ranks);
  fields.Field("rank_differences", o.rank_differences);
  fields.Field("rank_ended", o.rank_ended);
  fields.Field("machine", o.machine);
  fields.Field("timeouts", o.timeouts);
  fields.Field("crashes", o.crashes);
}

absl::StatusOr<Observation> ObservationFromJson(const Json& json, const std::string& origin) {
  ASSIGN_OR_RETURN(Observation observation,
                   ReadFields<Observation>(json, origin, FieldStyle::kSparse));
  RETURN_IF_ERROR(CheckBounds(observation, origin));
  return observation;
}

absl::StatusOr<std::map<std::string, ObservedTensor>> TensorsFromJson(const Json& json,
                                                                      const std::string& origin) {
  ASSIGN_OR_RETURN(LoadedTensors tensors,
                   ReadFields<LoadedTensors>({{"load", json}}, origin, FieldStyle::kSparse));
  return std::move(tensors.load);
}

Json ToJson(const ObservedMachine& machine) {
  return {{"disk_full", machine.disk_full}, {"memory_short", machine.memory_short}};
}

OrderedJson ToJson(const Observation& observation) {
  return WriteFields(observation, FieldStyle::kSparse);
}

}  // namespace bkm
