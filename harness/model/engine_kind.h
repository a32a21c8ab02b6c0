// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_ENGINE_KIND_H_
#define HARNESS_MODEL_ENGINE_KIND_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

struct Probe;

// A package that a probe needs in the runtime though neither subject requires it.
struct RuntimeNeed {
  std::string what;  // of the probe, in words
  std::string package;
  bool (*of)(const Probe& probe);
};

// A kind of trainer engine that an adapter drives (harness/cell/python/bkm_cell/adapters). A new
// engine is one entry here and one adapter file.
struct EngineKind {
  std::string name;            // "verl-torchtitan", as in matrices and --engine
  std::string engine_source;   // source of the engine; empty for the library alone, which is a
                               // control, or by its own trainer
  std::string library_source;  // source of the library
  bool library_in_runtime;  // the library is installed into the runtime, not a source tree on the
                            // cell's path
  std::string control;      // the kind that drives the same library alone; empty for a control
  std::vector<std::string> attentions;  // supported names
  std::string precision;                // default of the probe
  // What the engine does by itself, which `bkm check` asks for: its precision, and engine options
  // that leave to it what the adapter chooses otherwise.
  std::string own_precision;
  std::map<std::string, std::string> own_options;
  std::string schedule;             // how it counts a warm-up: OptimizerSettings::schedule
  std::vector<std::string> decays;  // of the learning rate: OptimizerSettings::decay
  std::vector<std::string> inputs;  // words of Probe::input besides "packed"
  bool cuts_by_tokens;         // cuts batches that do not divide evenly by tokens, as verl does
  bool looks_for_checkpoints;  // in a default folder, without being told to
  bool has_value_head;         // can be a critic
  bool exports_weights;        // and transformers is in its runtime, which loads them
  bool saves_checkpoints;
  std::vector<std::string> layouts;  // names of the dimensions of Layout that it offers
  bool chooses_fsdp = false;         // between FSDP1 and FSDP2 (engine_options: strategy)
  // The module of the trainer that users start, which probes with drive=trainer ask for; empty: no
  // cell starts one.
  std::string trainer = {};
  bool only_by_trainer = false;  // cells of this kind have no other drive than their trainer
  bool drops_last = false;       // its trainer leaves out what fills no step at the end of an epoch
  bool trainer_exports = false;  // its trainer can write a Hugging Face folder of a step
  // The forms of Probe::data that its trainer reads, the default first.
  std::vector<std::string> trainer_data = {"turns", "marked"};
  std::vector<std::string> trainer_layouts = {};  // as `layouts`, of its trainer
  // Probe::truncation that its trainer offers, the default first.
  std::vector<std::string> truncations = {};
  int64_t row_multiple = 1;  // tokens: its trainer cuts a row into equal parts
  // The module of the trainer that updates a policy or a critic on a roll-out (Probe::objective
  // "ppo"); empty: no cell runs one.
  std::string policy_trainer = {};
  // Options of its trainer, under the trainer's own names, that fields of a probe ask for: name ->
  // JSON pointer of the field. Of what names a schedule, see FillInFor.
  std::map<std::string, std::string> trainer_names = {};
  std::string undecayed = {};   // OptimizerSettings::undecayed, unless a matrix says
  std::string not_driven = {};  // what of the engine only its trainer drives, in words
  std::vector<RuntimeNeed> needs = {};
  // Models whose golden is not that of what these subjects build, and why: name -> clause.
  std::map<std::string, std::string> without_golden = {};
  bool judged_by_ending_only;  // no golden applies (the hostile fixtures)
  // How the adapter enters the engine: the modules that it imports, in order; the class of the last
  // module that it instantiates; the methods that it calls before weights are read. The static
  // check of the sources starts from these; empty if the kind has no static check.
  std::vector<std::string> entry_modules = {};
  std::string entry_class = {};
  std::vector<std::string> entry_methods = {};
};

const std::vector<EngineKind>& EngineKinds();
// nullptr for an unknown name.
const EngineKind* FindEngineKind(absl::string_view name);
std::vector<std::string> EngineKindNames();
// "verl on torchtitan"; of a kind without an engine "transformers alone" or "transformers by its
// own trainer".
std::string ShortTitle(const EngineKind& kind);
// Fills in what the kind decides where the JSON of a probe does not say. Of a probe that a trainer
// drives, options that ask for what a field asks for become that field: data.train_batch_size=4 is
// global_batch_size=4, and a schedule "cosine" or "linear" a decay over the cell's steps
// ("constant": none). One whose field is given, too, stays.
void FillInFor(const EngineKind& kind, Json& probe);
// The kinds whose engine and library are there, by the names of their sources; for a library
// without any engine, its control.
std::vector<const EngineKind*> KindsAmong(
    const std::function<bool(const std::string& source)>& is_there);

}  // namespace bkm

#endif  // HARNESS_MODEL_ENGINE_KIND_H_
