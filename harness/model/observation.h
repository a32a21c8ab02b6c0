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
#include "harness/model/ending.h"
#include "harness/model/observed_attention.h"
#include "harness/model/verdict.h"

namespace bkm {

// Whose code a stack frame runs.
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
  std::string module;  // that defines the type
  std::string message;
  std::string name;    // the missing module, name or attribute, if Python names it
  std::string object;  // type of the object that lacks the attribute: "module.Class"
  // Where the subject's own code imports the name that our adapter asked for and that is gone:
  // "verl/trainer/sft.py:12". Empty if only the adapter wants it.
  std::string imported_by;
  std::vector<ObservedFrame> frames;  // outermost first
};

struct ObservedStage {
  Stage stage = Stage::kImport;
  std::optional<double> seconds;  // absent: the cell ended in this stage
};

// What the runner found on the machine when an exception had ended the cell.
struct ObservedMachine {
  bool disk_full = false;
  bool memory_short = false;  // less is available than the cell may use
};

struct ObservedTensor {
  double norm = 0;
  double sum = 0;
  int64_t numel = 0;
};

struct ObservedParamGroup {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
};

struct ObservedNorm {
  std::string name;  // of the module: "layers.0.attention.kv_norm"
  double epsilon = 0;
};

// The model's own numbers, read back from what was built.
struct ObservedModel {
  std::vector<ObservedNorm> norms;
  std::optional<double> rope_theta;  // absent if no table of frequencies was found
  // Radians per position of each rotating pair; empty if no table was found.
  std::vector<double> rope_frequencies = {};
  // Of observations before norms had names: the epsilons of all norms, each value once.
  std::vector<double> norm_epsilons = {};
};

// A forward that trains nothing, of the batch of the reach test, before the first step.
struct ObservedForward {
  std::string tensors;  // file in the cell's folder
  std::string log_probs_dtype;
  std::string entropy_dtype;  // empty if no entropy was reported
};

// One exported tensor.
struct ObservedWeight {
  std::string dtype;
  std::vector<int64_t> shape;
  double norm = 0;
};

// What the engine exported after the first step.
struct ObservedExport {
  std::map<std::string, ObservedWeight> weights;  // by the name that the engine gave it
  std::string tensors;                            // file in the cell's folder
  // Of transformers' model, when it loaded them: its names that the export lacks, and names that
  // the export has and it does not know.
  std::vector<std::string> missing, unexpected;
};

// Documents first, first + 1, ... of a step's batch.
struct ObservedShare {
  int64_t first = 0;
  int64_t count = 0;
};

// Calls of one kind of collective by a rank.
struct ObservedCollective {
  std::string op;      // torch's name: all_reduce, reduce_scatter_tensor, ...
  std::string reduce;  // sum, avg, ...; empty if it reduces nothing
  int64_t ranks = 0;   // of its group; 0: not known
  std::string dtype;
  // What the rank was doing: a stage's name, or "witness" for a collective of bkm itself. Empty in
  // older runs.
  std::string stage;
  int64_t calls = 0;
  int64_t elements = 0;  // of the first tensor that each call was given, all calls together
};

// What differs between the ranks of one step.
struct ObservedRankStep {
  std::optional<int64_t> forwards;
  std::map<std::string, int64_t> attention_nodes;
  std::vector<int64_t> documents = {};  // as ObservedStep::documents, its own
};

// What showed which attention ran.
struct ObservedBackend {
  std::vector<ObservedLayer> layers;     // attention modules as built
  std::vector<std::string> called;       // HF: attention functions that were called
  std::vector<std::string> ops;          // dispatched in the evidence forward
  std::vector<ObservedKernels> kernels;  // per layer, in calls with gradients
  // Forward calls of a CPU stand-in whose arguments were read as a GPU reads them; per training
  // step.
  std::vector<int64_t> gpu_reads;
  std::vector<ObservedGpuDifference> gpu_differences;
  std::vector<ObservedKernelCalls> kernel_calls;
};

// What a rank has of the model, and of the tokens of its documents in the evidence forward.
struct ObservedPart {
  int64_t parameters = 0, of_parameters = 0;  // elements
  std::optional<int64_t> tokens;              // absent: nobody saw which
  int64_t of_tokens = 0;
};

// One of several ranks. What stands for the whole cell is in the Observation; rank 0's attention,
// too.
struct ObservedRank : ObservedBackend {
  int64_t rank = 0;
  std::string stage;
  std::string ended;       // done, raised, waiting, "signal 11" or "exit status 3"
  std::string waits;       // of a rank that did not end: "in all_reduce at FILE:LINE"
  std::string exception;   // what it raised
  int64_t data_rank = -1;  // which part of each batch it got, and into how many it was dealt
  int64_t data_ranks = 0;
  std::vector<ObservedShare> documents;  // its own, in each step
  std::string precision_ran;
  std::optional<ObservedPart> part;  // absent in older runs
  std::vector<ObservedCollective> collectives;
};

// A tensor that a rank and a lower one should hold alike, and do not.
struct ObservedRankDifference {
  std::string when;  // "step 1"
  std::string name;  // in a step's file
  int64_t rank = 0;
  std::optional<double> largest;  // absent: another shape
};

// A layer of experts in one training step: how many tokens its router gave to each expert, and by
// how much the bias that helps to choose each of them moved.
struct ObservedExperts {
  std::string layer;
  double coefficient = 0;  // of the model's own configuration
  std::vector<int64_t> tokens;
  std::vector<double> moved;
  bool operator==(const ObservedExperts&) const = default;
};

struct ObservedStep {
  std::optional<double> loss, grad_norm, learning_rate;
  std::optional<int64_t> loss_decimals;  // to which the loss was rounded for the report
  // Relative: of the total norm as torch sums it in the type of the gradients.
  std::optional<double> norm_error;
  std::string optimizer_class;
  std::vector<ObservedParamGroup> param_groups;
  std::string tensors;  // file in the cell's folder; empty if none was written
  std::string log_probs_dtype;
  std::optional<int64_t> forwards;  // calls of the model: one per micro-batch
  // Of a trainer's step: its documents in the trainer's order, by their place among those that a
  // trainer keeps of the data file. Empty: it had others.
  std::vector<int64_t> documents;
  std::vector<ObservedExperts> experts;  // of layers whose load is balanced by biases
  // Autograd nodes that the step's backward goes through, by name; only attention's.
  std::map<std::string, int64_t> attention_nodes;
  // Matrix products that the step's backward goes through, by type: bf16, fp32, ...
  std::map<std::string, int64_t> products;
  // Per layer, in the step's own forward; the relations are in `tensors`. Empty in a step of
  // several micro-batches.
  std::vector<ObservedRelation> attended;
  std::string attended_error;              // why `attended` could not be measured
  std::vector<ObservedRankStep> of_ranks;  // of each, if there are several
};

// The part of a worker's observation that the judge reads; harness/protocol/README.md describes all
// of it. Facts only. A missing field was not seen. JSON has null for a number that is not finite;
// it is read as NaN.
struct Observation : ObservedBackend {
  ObservedEnding ending;
  std::vector<ObservedStage> stages;          // in the order entered
  std::vector<ObservedException> exceptions;  // the exception that ended the cell, then its causes
  std::vector<std::string> plant;             // faults planted by tests
  // Packages for whose kernels code of ours ran: "flash_attn".
  std::vector<std::string> stand_ins;
  std::vector<std::string> stand_ins_hide;  // that are installed, too: "flash_attn 2.8.3"
  std::string precision_ran;                // bf16 or fp32; empty if unknown
  // Why the library was asked for no attention, in an adapter of a library that offers no choice.
  std::string not_asked;
  std::string configured;                              // backend in the engine's configuration
  std::string sharding_asked;                          // "fsdp1" or "fsdp2"; empty: neither
  std::string sharding;                                // that is seen, or "nothing"
  std::map<std::string, ObservedTensor> load;          // parameters after loading, by HF name
  std::optional<ObservedTensor> held;                  // all parameters as one tensor
  std::map<std::string, ObservedTensor> load_buffers;  // buffers that the file has, the same
  std::vector<ObservedMaskCall> mask_calls;
  std::optional<ObservedReach> reach;
  std::vector<ObservedReach> more_reaches;  // the same at other positions
  std::vector<ObservedRelation> attended;   // per layer, measured from its kernel
  std::string attended_error;               // why `attended` could not be measured
  ObservedModel model;
  std::optional<ObservedForward> forward_only;
  // The same forward by a fresh engine in fp32, where a stand-in ran for a kernel that refuses
  // fp32: no user can run it.
  std::optional<ObservedForward> forward_in_fp32;
  std::string forward_in_fp32_error;  // why it could not be repeated so
  std::vector<ObservedStep> steps;
  std::optional<ObservedExport> exported;
  std::optional<int64_t> checkpoint_files;  // that saving a checkpoint after the first step wrote
  // The steps from the second on, in a fresh engine that loaded that checkpoint.
  std::vector<ObservedStep> resumed;
  std::vector<ObservedRank> ranks;  // empty for one rank
  std::vector<ObservedRankDifference> rank_differences;
  std::string rank_ended;                  // which rank's process ended the cell: "rank 1 of 2"
  std::optional<ObservedMachine> machine;  // absent in older runs
  int64_t timeouts = 0;  // runs of this cell that hit the time limit, this run included
  int64_t crashes = 0;   // runs that a signal ended, if a crashed cell of several ranks ran again

  // The last stage entered, or import.
  Stage LastStage() const;
  // Whether its ending says nothing about the cell, which must be measured again: it is lost, was
  // cancelled or killed from outside, or timed out once.
  bool SaysNothing() const;
};

// Ignores unknown fields, so that files of newer workers can be read. A field of the wrong type is
// an error that names its path: "observation.json: $.steps[1].loss: ...".
absl::StatusOr<Observation> ObservationFromJson(const Json& json, const std::string& origin);
Json ToJson(const ObservedMachine& machine);
// A file of tensors' measures by name, as weights.json of a probe.
absl::StatusOr<std::map<std::string, ObservedTensor>> TensorsFromJson(const Json& json,
                                                                      const std::string& origin);
// Writes only the fields that were seen.
OrderedJson ToJson(const Observation& observation);

}  // namespace bkm

#endif  // HARNESS_MODEL_OBSERVATION_H_
