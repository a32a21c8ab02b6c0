// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/sensitivity_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/shown_text.h"

namespace bkm {
namespace {

constexpr std::array<const char*, 10> kHeads = {
    "model", "precision",  "reported in fp32", "log-probs, mean", "one log-prob",
    "loss",  "total norm", "median gradient",  "worst gradient",  "blind"};

std::string Nats(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.2g nats", value) : "-";
}

std::string Share(double value) {
  if (!std::isfinite(value)) return "-";
  return value < 0.1 ? absl::StrFormat("%.2g %%", 100 * value)
                     : absl::StrFormat("%.0f %%", 100 * value);
}

const char* Say(const ReportTypes& types) {
  if (types.fp32_log_probs) return types.fp32_loss ? "log-probs, loss" : "log-probs";
  return types.fp32_loss ? "loss" : "-";
}

std::array<std::string, 10> CellsOf(const SensitivityRow& row) {
  const Sensitivity& least = row.sensitivity;
  const auto [name, worst] = least.WorstGradient();
  return {ShownLine(row.model),
          row.precision,
          Say(row.types),
          Nats(least.log_probs_mean),
          Nats(least.log_probs_max),
          Share(least.loss),
          Share(least.total_norm),
          Share(least.MedianGradient()),
          Share(worst),
          absl::StrCat(least.BlindGradients(), " of ", least.gradients.size())};
}

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

std::string SensitivityText(const std::vector<SensitivityRow>& rows) {
  std::vector<std::array<std::string, 10>> lines = {{}};
  std::copy(kHeads.begin(), kHeads.end(), lines[0].begin());
  for (const SensitivityRow& row : rows) lines.push_back(CellsOf(row));
  std::array<size_t, 10> widths = {};
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text =
      "The smallest errors that are reported (4 floors; 2 of the mean of log-probs in bf16):\n";
  for (size_t k = 0; k < lines.size(); ++k) {
    for (size_t i = 0; i < lines[k].size(); ++i)
      absl::StrAppend(&text, absl::StrFormat("%-*s  ", static_cast<int>(widths[i]), lines[k][i]));
    if (k > 0) absl::StrAppend(&text, ShownLine(rows[k - 1].options));
    while (text.back() == ' ') text.pop_back();
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text,
                      "blind: tensors whose gradient may be off by 100 % or more; of these, only a "
                      "gradient that is zero in every step is found.\n");
}

Json SensitivityJson(const std::vector<SensitivityRow>& rows) {
  Json list = Json::array();
  for (const SensitivityRow& row : rows) {
    const Sensitivity& least = row.sensitivity;
    Json gradients = Json::object();
    for (const auto& [name, limit] : least.gradients) gradients[name] = Number(limit);
    list.push_back({{"model", row.model},
                    {"precision", row.precision},
                    {"reported_in_fp32",
                     {{"log_probs", row.types.fp32_log_probs}, {"loss", row.types.fp32_loss}}},
                    {"options", row.options},
                    {"cells", row.cells},
                    {"log_probs_mean", Number(least.log_probs_mean)},
                    {"log_probs_max", Number(least.log_probs_max)},
                    {"loss", Number(least.loss)},
                    {"total_norm", Number(least.total_norm)},
                    {"gradients", std::move(gradients)},
                    {"blind_gradients", least.BlindGradients()}});
  }
  return list;
}

}  // namespace bkm
