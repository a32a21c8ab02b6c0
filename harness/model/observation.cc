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

// One JSON object, read field by field. Absent and null fields keep the target's default, so that
// "not seen" stays visible. The first error is kept in `status`, which all readers of one
// observation share.
class Fields {
 public:
  Fields(const Json& json, std::string path, absl::Status& status)
      : json_(json), path_(std::move(path)), status_(status) {
    if (!json_.is_object()) Fail("", "an object", json_);
  }

  void Read(const char* key, std::string& target) {
    if (const Json* value = Find(key)) {
      if (value->is_string())
        target = value->get<std::string>();
      else
        Fail(key, "a string", *value);
    }
  }
  void Read(const char* key, bool& target) {
    if (const Json* value = Find(key)) {
      if (value->is_boolean())
        target = value->get<bool>();
      else
        Fail(key, "true or false", *value);
    }
  }
  void Read(const char* key, int64_t& target) {
    std::optional<int64_t> value;
    Read(key, value);
    if (value) target = *value;
  }
  void Read(const char* key, std::optional<int64_t>& target) {
    if (const Json* value = Find(key)) {
      if (value->is_number_integer())
        target = value->get<int64_t>();
      else
        Fail(key, "a whole number", *value);
    }
  }
  // JSON has no NaN: a number that is not finite was written as null.
  void Read(const char* key, std::optional<double>& target) {
    if (!json_.is_object() || !json_.contains(key)) return;
    target = ToNumber(key, json_[key]);
  }
  void Read(const char* key, double& target) {
    std::optional<double> value;
    Read(key, value);
    if (value) target = *value;
  }
  void Read(const char* key, std::vector<std::string>& target) {
    ForEach(key, [&](const Json& item, const std::string& path) {
      if (item.is_string())
        target.push_back(item.get<std::string>());
      else
        FailAt(path, "a string", item);
    });
  }
  void Read(const char* key, std::vector<int64_t>& target) {
    ForEach(key, [&](const Json& item, const std::string& path) {
      if (item.is_number_integer())
        target.push_back(item.get<int64_t>());
      else
        FailAt(path, "a whole number", item);
    });
  }
  void Read(const char* key, std::vector<double>& target) {
    ForEach(key, [&](const Json& item, const std::string& path) {
      target.push_back(ToNumber(absl::string_view(path).substr(path_.size() + 1), item));
    });
  }
  template <typename Enum, size_t n>
  void ReadName(const char* key, const std::array<absl::string_view, n>& names, Enum& target) {
    std::string name;
    Read(key, name);
    if (name.empty()) return;
    for (size_t i = 0; i < n; ++i) {
      if (names[i] == name) {
        target = static_cast<Enum>(i);
        return;
      }
    }
    Keep(absl::StrCat(path_, ".", key, ": unknown name '", name, "'"));
  }

  // read(Fields) for the object `key`, if it is there.
  template <typename F>
  void Object(const char* key, F read) {
    if (const Json* value = Find(key)) read(Fields(*value, absl::StrCat(path_, ".", key), status_));
  }
  // read(Fields) for each object of the list `key`.
  template <typename F>
  void Objects(const char* key, F read) {
    ForEach(key,
            [&](const Json& item, const std::string& path) { read(Fields(item, path, status_)); });
  }
  // read(name, Fields) for each member of the object `key`.
  template <typename F>
  void Members(const char* key, F read) {
    const Json* value = Find(key);
    if (!value) return;
    if (!value->is_object()) return Fail(key, "an object", *value);
    for (const auto& [name, member] : value->items())
      read(name, Fields(member, absl::StrCat(path_, ".", key, ".", name), status_));
  }

 private:
  const Json* Find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  template <typename F>
  void ForEach(const char* key, F read) {
    const Json* value = Find(key);
    if (!value) return;
    if (!value->is_array()) return Fail(key, "a list", *value);
    for (size_t i = 0; i < value->size(); ++i)
      read((*value)[i], absl::StrCat(path_, ".", key, "[", i, "]"));
  }
  double ToNumber(absl::string_view key, const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_null()) Fail(key, "a number", value);
    return std::numeric_limits<double>::quiet_NaN();
  }
  void Fail(absl::string_view key, absl::string_view needed, const Json& value) {
    FailAt(key.empty() ? path_ : absl::StrCat(path_, ".", key), needed, value);
  }
  void FailAt(const std::string& path, absl::string_view needed, const Json& value) {
    Keep(absl::StrCat(path, ": ", needed, " is needed here, not ", value.type_name()));
  }
  void Keep(const std::string& message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  }

  const Json& json_;
  std::string path_;
  absl::Status& status_;
};

void ReadEnding(Fields fields, ObservedEnding& ending) {
  fields.ReadName("kind", kEndingKinds, ending.kind);
  fields.Read("code", ending.code);
  fields.Read("signal", ending.signal);
  fields.Read("limit", ending.limit);
  fields.Read("from_outside", ending.from_outside);
  fields.Read("message", ending.message);
}

// Flattens the chain of causes; the worker bounds its length.
void ReadException(Fields fields, std::vector<ObservedException>& chain) {
  ObservedException exception;
  fields.Read("type", exception.type);
  fields.Read("message", exception.message);
  fields.Read("name", exception.name);
  fields.Read("object", exception.object);
  fields.Objects("frames", [&](Fields frame) {
    ObservedFrame& seen = exception.frames.emplace_back();
    frame.Read("file", seen.file);
    frame.Read("line", seen.line);
    frame.Read("function", seen.function);
    frame.ReadName("owner", kOwners, seen.owner);
    frame.Read("text", seen.text);
    frame.Read("statement", seen.statement);
  });
  chain.push_back(std::move(exception));
  fields.Object("cause", [&](Fields cause) { ReadException(cause, chain); });
}

void ReadStage(Fields fields, std::vector<ObservedStage>& stages, absl::Status& status) {
  std::string name;
  fields.Read("stage", name);
  const std::optional<Stage> stage = StageFromName(name);
  if (!stage) {
    if (status.ok()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("$.stages[", stages.size(), "].stage: unknown stage '", name, "'"));
    }
    return;
  }
  stages.push_back({*stage, std::nullopt});
  fields.Read("seconds", stages.back().seconds);
}

void ReadBackend(Fields fields, Observation& observation) {
  fields.Objects("layers", [&](Fields layer) {
    ObservedLayer& seen = observation.layers.emplace_back();
    layer.Read("layer", seen.layer);
    layer.Read("class", seen.class_name);
    layer.Read("module", seen.module);
  });
  fields.Objects("called",
                 [&](Fields call) { call.Read("callable", observation.called.emplace_back()); });
  fields.Read("configured", observation.configured);
  fields.Read("ops", observation.ops);
  fields.Objects("kernels", [&](Fields kernels) {
    ObservedKernels& seen = observation.kernels.emplace_back();
    kernels.Read("layer", seen.layer);
    kernels.Read("forward", seen.forward);
    kernels.Read("backward", seen.backward);
  });
}

void ReadReach(Fields fields, ObservedReach& reach) {
  fields.Read("position", reach.position);
  fields.Read("moved", reach.moved);
  fields.Read("largest", reach.largest);
}

void ReadMask(Fields fields, Observation& observation) {
  fields.Objects("calls", [&](Fields call) {
    ObservedMaskCall& seen = observation.mask_calls.emplace_back();
    call.Read("layer", seen.layer);
    call.Read("type", seen.type);
    call.Read("digest", seen.digest);
    call.Read("pairs", seen.pairs);
    call.Read("owner", seen.owner);
  });
  fields.Object("reach", [&](Fields reach) { ReadReach(reach, observation.reach.emplace()); });
  fields.Objects("reaches",
                 [&](Fields reach) { ReadReach(reach, observation.more_reaches.emplace_back()); });
  fields.Objects("attended", [&](Fields layer) {
    ObservedRelation& seen = observation.attended.emplace_back();
    layer.Read("layer", seen.layer);
    layer.Read("relation", seen.relation);
  });
  fields.Read("attended_error", observation.attended_error);
}

void ReadStep(Fields fields, std::vector<ObservedStep>& steps) {
  ObservedStep& step = steps.emplace_back();
  fields.Read("loss", step.loss);
  fields.Read("grad_norm", step.grad_norm);
  fields.Read("forwards", step.forwards);
  fields.Read("learning_rate", step.learning_rate);
  fields.Read("tensors", step.tensors);
  fields.Read("log_probs_dtype", step.log_probs_dtype);
  fields.Object("optimizer", [&](Fields optimizer) {
    optimizer.Read("class", step.optimizer_class);
    optimizer.Objects("param_groups", [&](Fields group) {
      ObservedParamGroup& seen = step.param_groups.emplace_back();
      std::vector<double> betas;
      group.Read("lr", seen.learning_rate);
      group.Read("betas", betas);
      group.Read("eps", seen.epsilon);
      group.Read("weight_decay", seen.weight_decay);
      if (betas.size() == 2) {
        seen.beta1 = betas[0];
        seen.beta2 = betas[1];
      }
    });
  });
}

void ReadTensor(Fields fields, ObservedTensor& tensor) {
  fields.Read("norm", tensor.norm);
  fields.Read("sum", tensor.sum);
  fields.Read("numel", tensor.numel);
}

}  // namespace

absl::string_view Name(EndingKind kind) { return kEndingKinds[static_cast<size_t>(kind)]; }
absl::string_view Name(FrameOwner owner) { return kOwners[static_cast<size_t>(owner)]; }

Stage Observation::LastStage() const {
  return stages.empty() ? Stage::kImport : stages.back().stage;
}

absl::StatusOr<Observation> ObservationFromJson(const Json& json, const std::string& origin) {
  Observation observation;
  absl::Status status;
  Fields fields(json, "$", status);
  fields.Object("ending", [&](Fields ending) { ReadEnding(ending, observation.ending); });
  fields.Objects("stages", [&](Fields stage) { ReadStage(stage, observation.stages, status); });
  fields.Object("exception",
                [&](Fields exception) { ReadException(exception, observation.exceptions); });
  fields.Read("plant", observation.plant);
  fields.Object("adapter",
                [&](Fields adapter) { adapter.Read("precision_ran", observation.precision_ran); });
  fields.Object("backend", [&](Fields backend) { ReadBackend(backend, observation); });
  fields.Members("load", [&](const std::string& name, Fields tensor) {
    ReadTensor(tensor, observation.load[name]);
  });
  fields.Object("held", [&](Fields tensor) { ReadTensor(tensor, observation.held.emplace()); });
  fields.Object("mask", [&](Fields mask) { ReadMask(mask, observation); });
  fields.Objects("steps", [&](Fields step) { ReadStep(step, observation.steps); });
  fields.Read("timeouts", observation.timeouts);
  if (!status.ok()) return WithContext(status, origin);
  return observation;
}

}  // namespace bkm
