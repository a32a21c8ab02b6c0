// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_MUTATION_VIEW_H_
#define HARNESS_SITE_MUTATION_VIEW_H_

#include <vector>

#include "harness/base/html.h"
#include "harness/selftest/mutation_report.h"

namespace bkm {

// One sentence for the front page, with a link to the details.
html::Markup MutationFigure(const std::vector<MutatedPair>& pairs);

// What became of the mutants of each pair, and every change that no check saw, with its lines.
html::Markup MutationSection(const std::vector<MutatedPair>& pairs);

}  // namespace bkm

#endif  // HARNESS_SITE_MUTATION_VIEW_H_
