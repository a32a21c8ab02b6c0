// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_EVIDENCE_VIEW_H_
#define HARNESS_SITE_EVIDENCE_VIEW_H_

#include "harness/base/html.h"
#include "harness/site/cell_evidence.h"

namespace bkm {

// The sections of a cell's page that show observations; empty without observations.

// Which attention each layer built, called and dispatched; equal layers share a row.
html::Markup BackendSection(const CellEvidence& evidence);
// Who attends to whom, and what changing a token moved.
html::Markup MaskSection(const CellEvidence& evidence);
// Distances from the golden in noise floors, and a plot of the tokens of each step.
html::Markup NumbersSection(const CellEvidence& evidence);
// Loss, gradient norm and learning rate by step, and the optimizer's own arithmetic.
html::Markup StepsSection(const CellEvidence& evidence);

// The string or number at `key`; "" or nullopt if there is none.
std::string StringOf(const Json& json, const char* key);
std::optional<double> NumberOf(const Json& json, const char* key);

}  // namespace bkm

#endif  // HARNESS_SITE_EVIDENCE_VIEW_H_
