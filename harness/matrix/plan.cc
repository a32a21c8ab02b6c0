// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/plan.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// Why this build cannot run the cell; empty when it can.
std::string WhyNot(const Cell& cell) {
  if (cell.probe.device != "cpu")
    return "this machine's worker has no GPU support yet: only device cpu can be run";
  if (cell.probe.ranks != 1) return "cells of more than one rank cannot be run yet";
  if (cell.probe.attention == "flex_flash")
    return "flex_flash needs a CUDA device of compute capability 9.0 or higher";
  return "";
}

struct ResolvedAxis {
  std::optional<SubjectSpec> subject;
  std::string label;
};

// Expands one group; keeps what the environment said.
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
                      .relax = group.relax,
                      .probe = group.probe};
            AddProbes(group, std::move(cell));
          }
        }
      }
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

  void AddProbes(const MatrixGroup& group, Cell cell) {
    for (const std::string& model : group.models) {
      for (const std::string& attention : group.attentions) {
        for (const std::string& precision : group.precisions) {
          for (const std::string& device : group.devices) {
            for (const auto& options : group.engine_options) {
              cell.probe.model = model;
              cell.probe.attention = attention;
              cell.probe.precision = precision;
              cell.probe.device = device;
              cell.probe.engine_options = options;
              AddCell(cell);
            }
          }
        }
      }
    }
  }

  void AddCell(const Cell& cell) {
    PlannedCell planned{.cell = cell, .id = CellId(cell)};
    if (!seen_.insert(planned.id).second) return;
    planned.why = WhyNot(cell);
    for (const MatrixExclusion& exclusion : matrix_.exclusions) {
      if (planned.why.empty() && exclusion.filter.Matches(cell))
        planned.why = absl::StrCat("excluded by the matrix: ", exclusion.why);
    }
    const bool wanted = filters_.empty() ||
                        std::any_of(filters_.begin(), filters_.end(),
                                    [&](const CellFilter& filter) { return filter.Matches(cell); });
    if (planned.why.empty() && !wanted) planned.why = "not matched by --filter";
    planned.included = planned.why.empty();
    cells_.push_back(std::move(planned));
  }

  const Matrix& matrix_;
  const std::vector<CellFilter>& filters_;
  const PlanEnvironment& environment_;
  std::set<std::string> seen_;
  std::vector<PlannedCell> cells_;
};

}  // namespace

absl::StatusOr<std::vector<PlannedCell>> ExpandMatrix(const Matrix& matrix,
                                                      const std::vector<CellFilter>& filters,
                                                      const PlanEnvironment& environment) {
  Expander expander(matrix, filters, environment);
  for (const MatrixGroup& group : matrix.groups) RETURN_IF_ERROR(expander.Add(group));
  return expander.Take();
}

}  // namespace bkm
