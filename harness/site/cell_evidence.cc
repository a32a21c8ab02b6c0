// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/cell_evidence.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "harness/judge/cell_files.h"
#include "harness/model/dealing.h"
#include "harness/numerics/model_shapes.h"
#include "harness/runner/references.h"

namespace bkm {
namespace {

// The precision whose floor judged the cell.
std::string PrecisionOf(const CellRecord& cell, const CellEvidence& evidence) {
  if (evidence.observation && !evidence.observation->precision_ran.empty())
    return evidence.observation->precision_ran;
  return cell.cell.probe.precision;
}

// A cell's log-probs alone: its gradients are a hundred times as much.
std::vector<double> LogProbsOf(const std::filesystem::path& cell_dir, const std::string& file) {
  const absl::StatusOr<SafetensorsFile> tensors = OpenCellTensors(cell_dir, file);
  if (!tensors.ok() || !tensors->Has("log_probs")) return {};
  return tensors->Doubles("log_probs").value_or(std::vector<double>());
}

}  // namespace

const ReferenceData& EvidenceReader::ProbeOf(const Probe& probe, const std::string& precision) {
  std::unique_ptr<ReferenceData>& evidence = probes_[FloorFile(probe, precision)];
  if (!evidence) {
    const RunDirectory& directory = run_.directory();
    evidence = std::make_unique<ReferenceData>(
        ReadReferenceData(directory.probe(ProbeKey(probe)), directory.reference(GoldenFile(probe)),
                          {{precision, directory.reference(FloorFile(probe, precision))}}));
  }
  return *evidence;
}

void EvidenceReader::ReadErrors(const CellRecord& cell, CellEvidence& evidence) {
  const std::string precision = PrecisionOf(cell, evidence);
  const ReferenceData& probe = ProbeOf(AsDealt(cell.cell.probe, *evidence.observation), precision);
  if (!probe.folder.ok()) return;
  if (!probe.folder->steps.empty()) evidence.documents = probe.folder->steps[0].document_lengths;
  const absl::StatusOr<std::vector<FloorStep>>& floors = probe.floors.at(precision);
  if (!probe.golden.ok() || !floors.ok()) return;
  const std::vector<ObservedStep>& steps = evidence.observation->steps;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (k >= probe.golden->size() || k >= floors->size() || k >= probe.folder->steps.size()) break;
    const std::vector<double> seen = LogProbsOf(run_.directory().cell(cell), steps[k].tensors);
    const std::vector<double>& golden = (*probe.golden)[k].log_probs;
    if (seen.empty() || seen.size() != golden.size()) continue;
    const PackedBatch& batch = probe.folder->steps[k];
    TokenErrors& errors = evidence.errors.emplace_back();
    errors.step = static_cast<int>(k);
    errors.documents = batch.document_lengths;
    errors.floor_max = (*floors)[k].reports.log_probs.max;
    for (const int64_t t : batch.JudgedPositions())
      errors.tokens.push_back({t, std::abs(seen[t] - golden[t])});
  }
}

void EvidenceReader::ReadAttention(const CellRecord& cell, CellEvidence& evidence) const {
  if (evidence.documents.empty() || evidence.observation->attended.empty()) return;
  const PackedDocuments documents(evidence.documents);
  const auto relations = ReadRelations(run_.directory().cell(cell), documents.tokens());
  const absl::StatusOr<ModelShape> shape = ShapeOf(cell.cell.probe);
  if (!relations.ok() || !shape.ok()) return;
  std::map<std::pair<std::string, int64_t>, size_t> known;  // by relation and window
  for (const ObservedRelation& layer : evidence.observation->attended) {
    const auto relation = relations->find(layer.relation);
    if (relation == relations->end()) continue;
    const int64_t window = shape->WindowOf(layer.layer);
    const auto [it, is_new] =
        known.emplace(std::make_pair(layer.relation, window), evidence.attention.size());
    if (is_new) evidence.attention.push_back({.seen = relation->second, .window = window});
    evidence.attention[it->second].layers.push_back(layer.layer);
  }
}

CellEvidence EvidenceReader::Read(const CellRecord& cell) {
  CellEvidence evidence;
  evidence.verdict = cell.verdict.value_or(Verdict());
  const absl::StatusOr<std::optional<Verdict>> verdict = run_.directory().ReadVerdict(cell);
  if (verdict.ok() && *verdict) evidence.verdict.findings = (*verdict)->findings;
  const absl::StatusOr<std::optional<CellFacts>> facts = run_.directory().ReadObservation(cell);
  if (!facts.ok() || !*facts) return evidence;
  evidence.raw = (*facts)->json();
  evidence.observation = (*facts)->seen();
  ReadErrors(cell, evidence);
  ReadAttention(cell, evidence);
  return evidence;
}

}  // namespace bkm
