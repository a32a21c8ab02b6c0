// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_VERDICT_VIEW_H_
#define HARNESS_SITE_VERDICT_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/base/html.h"
#include "harness/model/verdict.h"

namespace bkm {

// A verdict as a sign, its word, and a colour that adds no information. No `kind`: never run. Empty
// `link`: the cell has no page.
html::Markup VerdictBadge(const std::optional<VerdictKind>& kind, const std::string& link = "",
                          const std::string& before = "");

// The meaning of a verdict, and of a rung of the ladder, in one line.
const char* MeaningOf(VerdictKind kind);
const char* MeaningOf(Stage stage);
// "a module that is imported does not exist"; empty for an unknown code.
std::string MeaningOfReason(const std::string& code);

// All verdicts and stages, in reading order.
const std::vector<VerdictKind>& VerdictKinds();
const std::vector<Stage>& Stages();

// "broken at import: No module named 'x'" without the place in the code; empty for an ok.
std::string WhyText(const Verdict& verdict);

// A table of all verdicts with their meaning.
html::Markup VerdictLegend();

}  // namespace bkm

#endif  // HARNESS_SITE_VERDICT_VIEW_H_
