// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/numbers_story.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/json_facts.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

Json At(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_object() && json.contains(at) ? json[at] : Json();
}

// The step's number for people, from 1; 0 if it is unknown.
int64_t StepOf(const Json& json) {
  const int64_t step = WholeOf(json, "step").value_or(-1);
  return step >= 0 && step < INT32_MAX ? step + 1 : 0;
}

// "3.1 floors"; a floor of 0 has no multiples.
std::string Floors(const Json& quantity) {
  const Json multiple = At(quantity, "/multiple");
  return multiple.is_number() ? absl::StrFormat("%.1f floors", multiple.get<double>())
                              : std::string("infinitely many floors");
}

std::string QuantityLine(const char* name, const Json& quantity) {
  std::string line = absl::StrCat("  ", name, ": ", Floors(quantity));
  const Json tensor = At(quantity, "/tensor");
  std::string where = tensor.is_string() ? tensor.get<std::string>() + ", " : "";
  if (StepOf(quantity) > 0) absl::StrAppend(&line, " (", where, "step ", StepOf(quantity), ")");
  if (const auto allowed = FiniteOf(quantity, "allowed"))
    absl::StrAppendFormat(&line, ", allowed: %.0f", *allowed);
  return line + "\n";
}

std::string WorstTokenLine(const Json& token, const Json& largest) {
  if (!FiniteOf(token, "error")) return "";
  return absl::StrFormat(
      "  worst token: %d (document %d, position %d) in step %d, log-prob off by %.3g from %.4g, "
      "%s\n",
      WholeOf(token, "position").value_or(-1), WholeOf(token, "document").value_or(-1),
      WholeOf(token, "document_position").value_or(-1), StepOf(token), *FiniteOf(token, "error"),
      FiniteOf(token, "golden").value_or(0), Floors(largest));
}

}  // namespace

std::string NumbersStory(const Json& evidence) {
  const Json check = At(evidence, "/checks/numbers");
  std::string lines;
  for (const NumbersQuantity& quantity : NumbersQuantities()) {
    const Json found = At(check, absl::StrCat("/", quantity.key).c_str());
    if (found.is_object()) lines += QuantityLine(quantity.name, found);
  }
  if (lines.empty()) return "";
  const Json allowed = At(check, "/allowed_multiple");
  if (allowed.is_number())
    absl::StrAppendFormat(&lines, "  allowed: %.0f floors\n", allowed.get<double>());
  lines += WorstTokenLine(At(check, "/worst_token"), At(check, "/log_probs_max"));
  const Json answer = At(evidence, "/diagnosis/answer");
  if (answer.is_string()) {
    absl::StrAppend(&lines, "  diagnosis: the log-probs of the wrong answer \"",
                    answer.get<std::string>(), "\", ", Floors(At(evidence, "/diagnosis")),
                    " away\n");
  } else if (At(check, "/outcome") == Json("failed")) {
    absl::StrAppend(&lines, "  diagnosis: none of the predicted wrong answers\n");
  }
  return lines;
}

}  // namespace bkm
