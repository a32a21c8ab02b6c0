// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_CELL_EVIDENCE_H_
#define HARNESS_SITE_CELL_EVIDENCE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/reference_data.h"
#include "harness/judge/relation.h"
#include "harness/model/cell_record.h"
#include "harness/model/observation.h"
#include "harness/site/site_run.h"

namespace bkm {

// How far one training step's log-probs are from the golden, token by token.
struct TokenErrors {
  int step = 0;
  std::vector<int64_t> documents;  // tokens of each
  struct Token {
    int64_t position = 0;  // in the packed batch
    double error = 0;      // |log-prob - golden|, nats; NaN: not finite
  };
  std::vector<Token> tokens;  // that are judged
  double floor_max = 0;       // the largest error of right runs
};

// Who attends to whom in some layers that do the same.
struct LayerAttention {
  std::vector<int64_t> layers;
  Relation seen;
  int64_t window = 0;  // asked; 0: none
};

// What a cell's page shows beside its record. What could not be read is not there.
struct CellEvidence {
  Json raw;  // observation.json; null: not measured
  std::optional<Observation> observation;
  Verdict verdict;                  // with the evidence of the judge
  std::vector<int64_t> documents;   // of the batch of the first step
  std::vector<TokenErrors> errors;  // by step
  std::vector<LayerAttention> attention;
};

// Reads the evidence of a run's cells; goldens and floors once for all of them.
class EvidenceReader {
 public:
  explicit EvidenceReader(const SiteRun& run) : run_(run) {}
  CellEvidence Read(const CellRecord& cell);

 private:
  const ReferenceData& ProbeOf(const Probe& probe, const std::string& precision);
  void ReadErrors(const CellRecord& cell, CellEvidence& evidence);
  void ReadAttention(const CellRecord& cell, CellEvidence& evidence) const;

  const SiteRun& run_;
  std::map<std::string, std::unique_ptr<ReferenceData>> probes_;  // by floor
};

}  // namespace bkm

#endif  // HARNESS_SITE_CELL_EVIDENCE_H_
