// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_PLANT_H_
#define HARNESS_MODEL_PLANT_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace bkm {

// Values of Cell::plant that are not faults of the catalogue (harness/selftest/catalogue.json),
// which the worker plants in memory. No cell with any of them stands for another cell.

// The subjects are unchanged. The cell records which of their lines run.
inline constexpr char kRecordLines[] = "record-lines";

// "mutant:PARTY/FILE:LINE:OPERATOR:HASH": one place of the subject's files is changed.
inline constexpr char kMutantPrefix[] = "mutant:";
inline bool IsMutant(absl::string_view plant) { return absl::StartsWith(plant, kMutantPrefix); }

}  // namespace bkm

#endif  // HARNESS_MODEL_PLANT_H_
