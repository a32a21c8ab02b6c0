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

// How a verdict looks everywhere: a sign, its word, and a colour that says no more than both.
// `kind` empty: never run. `link` empty: no page of its own.
html::Markup VerdictBadge(const std::optional<VerdictKind>& kind, const std::string& link = "",
                          const std::string& before = "");

// One line on what a verdict means, and on what a rung of the ladder is.
const char* MeaningOf(VerdictKind kind);
const char* MeaningOf(Stage stage);
// "a module that is imported does not exist"; empty for a code that nobody knows.
std::string MeaningOfReason(const std::string& code);

// All of them, in the order in which people read them.
const std::vector<VerdictKind>& VerdictKinds();
const std::vector<Stage>& Stages();

// "broken at import: No module named 'x'" without the place in the code; empty for an ok.
std::string WhyText(const Verdict& verdict);

// The list of verdicts with their meaning.
html::Markup VerdictLegend();

}  // namespace bkm

#endif  // HARNESS_SITE_VERDICT_VIEW_H_
