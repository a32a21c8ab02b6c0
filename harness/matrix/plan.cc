// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/plan.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/model/dealing.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/model/input_form.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

// The number of parts that an engine of this kind makes of a step with these documents when
// probe.micro_batches are requested.
int64_t PartsMade(const EngineKind& kind, const Probe& probe, const std::vector<int64_t>& lengths) {
  const auto documents = static_cast<int64_t>(lengths.size());
  const auto rounded_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  if (documents % probe.micro_batches == 0) return probe.micro_batches;
  if (!kind.cuts_by_tokens)
    return rounded_up(documents, rounded_up(documents, probe.micro_batches));
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  return rounded_up(tokens, std::max(longest, rounded_up(tokens, probe.micro_batches)));
}

// Why the golden says nothing about the cell; empty if it does.
std::string WhyNoGolden(const Cell& cell) {
  const Probe& probe = cell.probe;
  const auto& without = FindEngineKind(cell.engine)->without_golden;
  if (const auto model = without.find(probe.model); model != without.end())
    return absl::StrCat("there is no golden of ", probe.model, " for ", cell.engine, ": ",
                        model->second);
  // verl's names: lora_rank, lora_adapter_path, lora: {rank: ...}; by its trainer model.lora_rank.
  for (const auto& [name, text] : probe.engine_options) {
    const std::string option = name.substr(name.rfind('.') + 1);
    if (!absl::StartsWith(option, "lora")) continue;
    const Json value = Json::parse(text, nullptr, false);
    const bool is_off = value.is_null() || value == Json(0) || value == Json(false) ||
                        value == Json("") ||
                        (value.is_object() && value.value("rank", Json(1)) == 0) ||
                        (value.is_object() && value.empty());
    // A name like lora_alpha says nothing alone.
    const bool switches =
        option == "lora" || option == "lora_rank" || option == "lora_adapter_path";
    if (switches && !is_off)
      return absl::StrCat("engine option ", name,
                          ": LoRA trains adapters, and there is no golden of them yet");
  }
  return "";
}

// What a trainer cannot be asked for yet; empty if it can be asked for all of the probe.
std::string WhyNotByTrainer(const EngineKind& kind, const Probe& probe) {
  if (probe.drive != "trainer") {
    if (kind.only_by_trainer)
      return absl::StrCat(kind.name, " is a trainer: leave drive=engine out");
    return probe.data == Probe().data ? ""
                                      : "data is what a trainer reads: ask for drive=trainer, too";
  }
  if (const auto& forms = kind.trainer_data;
      std::find(forms.begin(), forms.end(), probe.data) == forms.end())
    return absl::StrCat("the trainer of ", kind.name, " reads no data of the form ", probe.data,
                        ": ask for ", absl::StrJoin(forms, " or "));
  const OptimizerSettings& optimizer = probe.optimizer;
  const bool updates = probe.objective == "ppo";
  const std::pair<bool, const char*> lacks[] = {
      {probe.head != "lm" && !updates, "a value head: it trains language models"},
      {updates && probe.global_batch_size > 0, "mini-batches of a roll-out (global_batch_size)"},
      {updates && probe.max_length > 0, "a roll-out whose documents are cut off (max_length)"},
      {updates && probe.layout != Layout(), "an update on a roll-out with several ranks"},
      {updates && (probe.export_weights || probe.resume_checkpoint),
       "a checkpoint of an update on a roll-out"},
      {probe.input != Probe().input && !kind.only_by_trainer, "another form of input"},
      {probe.micro_batches != 1 && kind.row_multiple > 1 && !IsDealtByTrainer(probe),
       "micro-batches without a global_batch_size: it packs rows itself"},
      {probe.layout.data_ranks() > 1 && kind.row_multiple > 1 && !IsDealtByTrainer(probe),
       "several ranks without a global_batch_size: each packs rows of its own"},
      {probe.export_weights && (!kind.trainer_exports || probe.layout != Layout()),
       "an export of weights"},
      {probe.temperature != 1 || probe.entropy, "a temperature or an entropy"},
      {!optimizer.decay.empty() && optimizer.total_steps != probe.steps,
       "a decay that is made for more steps than it trains"},
      {!probe.adapter_options.empty(), "options of adapters"},
  };
  for (const auto& [is_asked, what] : lacks) {
    if (is_asked)
      return absl::StrCat("a cell that a trainer drives cannot be asked for ", what,
                          " yet: leave drive=trainer or that out");
  }
  if (const auto& known = kind.truncations;
      probe.max_length > 0 &&
      std::find(known.begin(), known.end(), probe.truncation) == known.end())
    return absl::StrCat("the trainer of ", kind.name, " does not shorten documents by '",
                        probe.truncation, "': ",
                        known.empty() ? "leave max_length out"
                                      : absl::StrCat("ask for ", absl::StrJoin(known, " or ")));
  const std::vector<int64_t>& lengths = probe.documents.front();
  const int64_t in_a_step = DealtIn(probe, 0).size(), data_ranks = probe.layout.data_ranks();
  if (in_a_step % data_ranks != 0)
    return absl::StrCat("a step of ", in_a_step, " documents has no ", data_ranks,
                        " equal parts, one for each data-parallel rank");
  if (IsDealtByTrainer(probe) && in_a_step % (data_ranks * probe.micro_batches) != 0)
    return absl::StrCat("a global batch of ", in_a_step, " documents has no ", probe.micro_batches,
                        " equal micro-batches", data_ranks > 1 ? " of each rank" : "");
  if (const int64_t kept = std::ssize(KeptDocuments(probe));
      data_ranks > 1 && !kind.drops_last && !IsPackedInRows(probe) && kept % in_a_step != 0)
    return absl::StrCat("on several ranks the trainer of ", kind.name,
                        " fills the last batch of an epoch up with documents that it had: ask for "
                        "a number of documents that the global batch of ",
                        in_a_step, " divides, which ", kept, " is not");
  const int64_t without_answer = std::count_if(lengths.begin(), lengths.end(), [&](int64_t length) {
    return length < ShortestWithAnswer(probe);
  });
  if (probe.data != "single" &&
      without_answer >= (IsDealtByTrainer(probe) ? probe.global_batch_size : std::ssize(lengths)))
    return absl::StrCat("a step may have no answer to train: documents of fewer than ",
                        ShortestWithAnswer(probe), " tokens have none");
  if (IsPackedInRows(probe) && (probe.global_batch_size > 0) != (probe.max_length > 0))
    return absl::StrCat("the trainer of ", kind.name,
                        " packs rows: ask for both, their number (global_batch_size) and their "
                        "length (max_length), or for neither");
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (const int64_t row = probe.max_length > 0 ? probe.max_length : tokens;
      row % kind.row_multiple != 0)
    return absl::StrCat("the trainer of ", kind.name, " cuts a row into ", kind.row_multiple,
                        " equal parts, and ",
                        probe.max_length > 0 ? "max_length is " : "the first documents have ", row,
                        probe.max_length > 0 ? "" : " tokens together", ": a multiple of ",
                        kind.row_multiple, " is needed");
  for (const int64_t length : lengths) {
    if (const int64_t shortest = ShortestConversation(probe); length < shortest)
      return absl::StrCat("a trainer reads conversations, and none has ", length,
                          " tokens: documents of at least ", shortest, " are needed");
  }
  return "";
}

// Why the probe does not apply to the engine kind; empty if it does.
std::string WhyNotApplicable(const Cell& cell) {
  const EngineKind& kind = *FindEngineKind(cell.engine);
  const Probe& probe = cell.probe;
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.of_kind != nullptr && !dimension.of_kind(kind) && !dimension.IsDefault(cell))
      return absl::StrCat(kind.name, " ", dimension.lacks);
  }
  if (std::string why = WhyNotByTrainer(kind, probe); !why.empty()) return why;
  if (probe.resume_checkpoint && probe.drive != "trainer" && !kind.saves_checkpoints)
    return absl::StrCat(kind.name, " is a library alone and saves no checkpoints");
  if (const std::string own = probe.drive == "trainer" ? kind.undecayed : "";
      probe.optimizer.undecayed != own)
    return absl::StrCat("which parameters do not decay is ", kind.name,
                        "'s own choice: leave undecayed out of optimizer");
  for (const std::string& word : WordsBesidePacked(probe.input)) {
    if (std::find(kind.inputs.begin(), kind.inputs.end(), word) == kind.inputs.end())
      return absl::StrCat(kind.name, " takes no input with '", word, "', only packed input and ",
                          absl::StrJoin(kind.inputs, ", "));
  }
  if (probe.adapter_options.contains("kernels") && probe.attention != "flash_attention_2")
    return absl::StrCat(probe.attention, " has no kernels of flash_attn: leave kernels out");
  if (probe.export_weights && probe.head != "lm")
    return "transformers cannot load what a critic exports as a language model";
  if (probe.head != "lm" && (probe.entropy || probe.temperature != 1))
    return "a critic has no logits: neither a temperature nor an entropy";
  if (const std::string& decay = probe.optimizer.decay;
      !decay.empty() &&
      std::find(kind.decays.begin(), kind.decays.end(), decay) == kind.decays.end())
    return absl::StrCat(kind.name, " has no ", decay, " decay of the learning rate");
  if ((probe.export_weights || probe.resume_checkpoint) && probe.steps < 2)
    return "what is handed over after the first step is compared with the second: steps must be at "
           "least 2";
  for (int step = 0; step < probe.steps; ++step) {
    const std::vector<int64_t> lengths = DocumentsOf(probe, step);
    if (const int64_t made = PartsMade(kind, probe, lengths); made != probe.micro_batches)
      return absl::StrCat(kind.name, " cuts the ", lengths.size(), " documents of step ", step + 1,
                          " into ", made, " micro-batches instead of ", probe.micro_batches);
  }
  return "";
}

// The probe's numbers that a layout cannot divide, or more processes than a cell may have.
absl::Status CheckLayout(const Probe& probe, const ModelShape& shape, const CellLimits& limits) {
  const Layout& layout = probe.layout;
  if (layout == Layout()) return absl::OkStatus();
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("layout ", LayoutText(layout), ": ", what...));
  };
  // Each rank is a process, and one more watches them.
  if (layout.ranks() + 1 > limits.processes)
    return wrong("its ", layout.ranks(), " ranks and the process that watches them are more than ",
                 limits.processes, " processes: raise limits.processes");
  const int64_t heads_divided_by = layout.tp * layout.ulysses;
  if (shape.heads % heads_divided_by != 0 || shape.kv_heads % layout.tp != 0)
    return wrong(shape.family, " has ", shape.heads, " heads and ", shape.kv_heads,
                 " key heads, which ", layout.tp > 1 ? "tp" : "ulysses", " does not divide");
  if (shape.layers < layout.pp)
    return wrong(shape.family, " has ", shape.layers, " layers, fewer than pp");
  if (layout.ep > 1 && shape.experts.count == 0)
    return wrong(shape.family, " has no experts: leave ep out");
  if (layout.ep > 1 && shape.experts.count % layout.ep != 0)
    return wrong(shape.family, " has ", shape.experts.count, " experts, which ep does not divide");
  const int64_t parts = int64_t{layout.data_ranks()} * probe.micro_batches;
  for (int step = 0; step < probe.steps; ++step) {
    const auto documents = static_cast<int64_t>(DocumentsOf(probe, step).size());
    if (documents < parts)
      return wrong("step ", step + 1, " has ", documents, " documents, fewer than the ",
                   layout.data_ranks(), " data-parallel ranks with ", probe.micro_batches,
                   " micro-batches each need");
  }
  return absl::OkStatus();
}

// Why the engine kind has no such layout; empty if it has.
std::string WhyNoSuchLayout(const EngineKind& kind, const Probe& probe) {
  const bool by_trainer = probe.drive == "trainer";
  const std::vector<std::string>& offered = by_trainer ? kind.trainer_layouts : kind.layouts;
  for (const LayoutDimension& dimension : LayoutDimensions()) {
    const bool has_it = std::find(offered.begin(), offered.end(), dimension.name) != offered.end();
    if (probe.layout.*dimension.degree == 1 || has_it) continue;
    return absl::StrCat("cells of ", kind.name, by_trainer ? " by its trainer" : "",
                        " cannot be asked for ", dimension.name,
                        offered.empty()
                            ? ": they have one rank"
                            : absl::StrCat(", only for ", absl::StrJoin(offered, ", ")));
  }
  return "";
}

struct ResolvedAxis {
  std::optional<SubjectSpec> subject;
  std::string label;
};

// Expands groups into cells.
class Expander {
 public:
  Expander(const Matrix& matrix, const std::vector<CellFilter>& filters,
           const PlanEnvironment& environment)
      : matrix_(matrix), filters_(filters), environment_(environment) {}

  absl::Status Add(const MatrixGroup& group) {
    ASSIGN_OR_RETURN(const std::vector<ResolvedAxis> engines, Resolve(group.engines));
    ASSIGN_OR_RETURN(const std::vector<ResolvedAxis> libraries, Resolve(group.libraries));
    for (const ResolvedAxis& engine : engines) {
      for (const ResolvedAxis& library : libraries) {
        for (const std::string& runtime : group.runtimes) {
          ASSIGN_OR_RETURN(const std::vector<std::string> torches, TorchVersions(group, runtime));
          for (const std::string& torch : torches) {
            Cell cell{.engine = group.engine_kind,
                      .engine_subject = engine.subject,
                      .library_subject = library.subject,
                      .engine_label = engine.label,
                      .library_label = library.label,
                      .runtime = runtime,
                      .torch = torch,
                      .relax = group.relax};
            for (const Probe& probe : group.probes) {
              cell.probe = probe;
              RETURN_IF_ERROR(AddCell(group, cell));
            }
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Refuses exclusions that match no cell and filter values that no cell has: misspelt values.
  absl::Status CheckSelection() const {
    std::vector<const Cell*> cells;
    for (const PlannedCell& planned : cells_) cells.push_back(&planned.cell);
    for (const MatrixExclusion& exclusion : matrix_.exclusions) {
      const absl::Status values = exclusion.filter.CheckValues(cells);
      if (!values.ok()) return WithContext(values, exclusion.place);
      if (std::none_of(cells.begin(), cells.end(),
                       [&](const Cell* cell) { return exclusion.filter.Matches(*cell); }))
        return absl::InvalidArgumentError(absl::StrCat(
            exclusion.place, ": no cell of the matrix has all of these values: remove the entry"));
    }
    for (const CellFilter& filter : filters_) {
      if (absl::Status values = filter.CheckValues(cells); !values.ok())
        return WithContext(values, "--filter");
    }
    return absl::OkStatus();
  }

  std::vector<PlannedCell> Take() { return std::move(cells_); }

 private:
  absl::StatusOr<std::vector<ResolvedAxis>> Resolve(const std::vector<SubjectSpec>& specs) {
    std::vector<ResolvedAxis> axis;
    for (const SubjectSpec& spec : specs) {
      ASSIGN_OR_RETURN(const Subject subject, environment_.resolve(spec));
      axis.push_back({subject.spec, subject.label});
    }
    if (axis.empty()) axis.push_back({});
    return axis;
  }

  absl::StatusOr<std::vector<std::string>> TorchVersions(const MatrixGroup& group,
                                                         const std::string& runtime) {
    ASSIGN_OR_RETURN(const std::string own, environment_.torch_of_runtime(runtime));
    return group.torch.empty() ? std::vector<std::string>{own} : group.torch;
  }

  // Puts the cell into a runtime that has what its probe needs.
  absl::Status ChooseRuntime(const MatrixGroup& group, PlannedCell& planned) {
    Cell& cell = planned.cell;
    const EngineKind& kind = *FindEngineKind(cell.engine);
    const auto need = std::find_if(kind.needs.begin(), kind.needs.end(),
                                   [&](const RuntimeNeed& each) { return each.of(cell.probe); });
    if (need == kind.needs.end() || !environment_.runtime_with) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string other,
                     environment_.runtime_with(cell.runtime, need->package));
    if (other == cell.runtime) return absl::OkStatus();
    const std::string lack = absl::StrCat(need->what, " of ", kind.name, " needs ", need->package,
                                          ", which the runtime ", cell.runtime, " lacks");
    if (other.empty() || group.names_runtimes) {
      planned.not_offered =
          absl::StrCat(lack, other.empty() ? ": write a runtime that has it in its base"
                                           : absl::StrCat(": ask for --runtime ", other));
      return absl::OkStatus();
    }
    cell.runtime = other;
    planned.note = absl::StrCat("in the runtime ", other, ": ", lack);
    return absl::OkStatus();
  }

  absl::Status AddCell(const MatrixGroup& group, const Cell& asked) {
    PlannedCell planned{.cell = asked};
    RETURN_IF_ERROR(ChooseRuntime(group, planned));
    const Cell& cell = planned.cell;
    planned.id = CellId(cell);
    if (!seen_.insert(planned.id).second) return absl::OkStatus();
    planned.why = WhyNotApplicable(cell);
    for (const MatrixExclusion& exclusion : matrix_.exclusions) {
      if (planned.why.empty() && exclusion.filter.Matches(cell))
        planned.why = absl::StrCat("excluded by the matrix: ", exclusion.why);
    }
    const bool wanted = filters_.empty() ||
                        std::any_of(filters_.begin(), filters_.end(),
                                    [&](const CellFilter& filter) { return filter.Matches(cell); });
    if (planned.why.empty() && !wanted) planned.why = kNotMatched;
    planned.included = planned.why.empty();
    if (planned.included) {
      ASSIGN_OR_RETURN(planned.unsupported, WhyUnsupported(cell.probe));
      if (const std::string why = WhyNoSuchLayout(*FindEngineKind(cell.engine), cell.probe);
          !why.empty())
        planned.not_offered = why;
      if (const std::string why = WhyNoGolden(cell); !why.empty()) planned.not_offered = why;
    }
    if (planned.included && !planned.is_stopped()) {
      // An error of the model's numbers, or of the form of its weights, comes before anything runs.
      ASSIGN_OR_RETURN(const ModelShape shape, ShapeOf(cell.probe));
      RETURN_IF_ERROR(CheckLayout(cell.probe, shape, matrix_.limits));
    }
    cells_.push_back(std::move(planned));
    return absl::OkStatus();
  }

  // Why running the probe would prove nothing, whatever the subjects do; empty if it would.
  absl::StatusOr<std::string> WhyUnsupported(const Probe& probe) {
    if (probe.device == "cpu") return WhyDevicesCannot(probe, {});
    if (!environment_.devices) return std::string();
    if (!devices_) {
      ASSIGN_OR_RETURN(devices_, environment_.devices());
    }
    return WhyDevicesCannot(probe, *devices_);
  }

  const Matrix& matrix_;
  const std::vector<CellFilter>& filters_;
  const PlanEnvironment& environment_;
  std::optional<std::vector<CudaDevice>> devices_;  // of this machine, once they are asked for
  std::set<std::string> seen_;
  std::vector<PlannedCell> cells_;
};

}  // namespace

absl::StatusOr<std::vector<PlannedCell>> ExpandMatrix(const Matrix& matrix,
                                                      const std::vector<CellFilter>& filters,
                                                      const PlanEnvironment& environment) {
  Expander expander(matrix, filters, environment);
  for (const MatrixGroup& group : matrix.groups) RETURN_IF_ERROR(expander.Add(group));
  RETURN_IF_ERROR(expander.CheckSelection());
  return expander.Take();
}

}  // namespace bkm
