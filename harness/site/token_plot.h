// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_TOKEN_PLOT_H_
#define HARNESS_SITE_TOKEN_PLOT_H_

#include "harness/base/html.h"
#include "harness/site/cell_evidence.h"

namespace bkm {

// One step as a picture: a dot per judged token at the error of its log-prob (logarithmic), the
// noise floor, and the line at `allowed` floors above which a cell is wrong. Errors above
// it are crosses, so that the picture does not depend on colour.
html::Markup TokenPlot(const TokenErrors& errors, double allowed);

// The same in a sentence: "278 tokens; the largest error is 0.0523 nats, 0.9 floors".
std::string TokenPlotText(const TokenErrors& errors, double allowed);

}  // namespace bkm

#endif  // HARNESS_SITE_TOKEN_PLOT_H_
