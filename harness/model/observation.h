// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_OBSERVATION_H_
#define HARNESS_MODEL_OBSERVATION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"
#include "harness/model/observed_attention.h"
#include "harness/model/verdict.h"

namespace bkm {

enum class EndingKind {
  kCompleted,
  kRaised,
  kExited,
  kSignalled,
  kTimedOut,
  kLimit,
  kCancelled,
  kLost,
  kForkFailed,
  // Said by the runner, of a cell for which no process was started.
  kNoSolution,
  kInstallFailed,
  kDeviceMissing,
  kApiCheck,  // the static check says that importing the engine fails: not run
};
absl::string_view Name(EndingKind kind);

struct ObservedEnding {
  EndingKind kind = EndingKind::kLost;
  std::optional<int64_t> code;
  std::optional<int64_t> signal;
  std::string limit;  // memory, output or processes
  bool from_outside = false;
  std::string message;
};

// Whose code a frame is.
enum class FrameOwner { kEngine, kLibrary, kTorch, kRuntime, kPython, kHarness };
absl::string_view Name(FrameOwner owner);

struct ObservedFrame {
  std::string file;  // relative to its owner's root
  int64_t line = 0;
  std::string function;
  FrameOwner owner = FrameOwner::kPython;
  std::string text;       // the source line
  std::string statement;  // raise, assert, import, call or other
};

struct ObservedException {
  std::string type;
  std::string message;
  std::string name;                   // the missing module, name or attribute, if Python says which
  std::string object;                 // "module.Class" of the object that lacks an attribute
  std::vector<ObservedFrame> frames;  // outermost first
};

struct ObservedStage {
  Stage stage = Stage::kImport;
  std::optional<double> seconds;  // absent: the cell ended inside
};

struct ObservedTensor {
  double norm = 0;
  double sum = 0;
  int64_t numel = 0;
};

struct ObservedParamGroup {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
};

struct ObservedStep {
  std::optional<double> loss, grad_norm, learning_rate;
  std::string optimizer_class;
  std::vector<ObservedParamGroup> param_groups;
  std::string tensors;  // file, relative to the cell's folder; empty: none was written
  std::string log_probs_dtype;
  std::optional<int64_t> forwards;  // how often the model was entered: once per micro-batch
};

// The part of a worker's observation that the judge reads (harness/protocol/README.md has all of
// it). Facts only; absent means not seen. A number that is not finite arrives as null and is NaN.
struct Observation {
  ObservedEnding ending;
  std::vector<ObservedStage> stages;           // in the order entered
  std::vector<ObservedException> exceptions;   // the one that ended the cell, then its causes
  std::vector<std::string> plant;              // faults planted by tests
  std::string precision_ran;                   // bf16, fp32; empty: not said
  std::vector<ObservedLayer> layers;           // what was built
  std::vector<std::string> called;             // HF: attention callables really called
  std::string configured;                      // the backend that the built configuration names
  std::vector<std::string> ops;                // seen in the evidence forward
  std::map<std::string, ObservedTensor> load;  // by HF name, after loading
  std::optional<ObservedTensor> held;          // all that the model holds, as if it were one
  std::vector<ObservedMaskCall> mask_calls;
  std::optional<ObservedReach> reach;
  std::vector<ObservedReach> more_reaches;  // of other positions
  std::vector<ObservedRelation> attended;   // who attends to whom, as each layer's kernel ran
  std::string attended_error;               // why that could not be read
  std::vector<ObservedKernels> kernels;     // of each layer, in a call with gradients
  std::vector<ObservedStep> steps;
  int64_t timeouts = 0;  // how often this cell ran into its time limit, this run included

  // The last stage entered; import when none was.
  Stage LastStage() const;
};

// Lenient: unknown fields are ignored, so that newer workers can be read. A field of the wrong type
// is an error that names its path: "observation.json: $.steps[1].loss: ...".
absl::StatusOr<Observation> ObservationFromJson(const Json& json, const std::string& origin);
// Only what was seen.
OrderedJson ToJson(const Observation& observation);

}  // namespace bkm

#endif  // HARNESS_MODEL_OBSERVATION_H_
