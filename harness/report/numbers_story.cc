// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/numbers_story.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

Json At(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_object() && json.contains(at) ? json[at] : Json();
}

// "3.1 floors"; a floor of 0 has no multiples.
std::string Floors(const Json& quantity) {
  const Json multiple = At(quantity, "/multiple");
  return multiple.is_number() ? absl::StrFormat("%.1f floors", multiple.get<double>())
                              : std::string("infinitely many floors");
}

std::string QuantityLine(const char* name, const Json& quantity) {
  std::string line = absl::StrCat("  ", name, ": ", Floors(quantity));
  const Json tensor = At(quantity, "/tensor"), step = At(quantity, "/step");
  std::string where = tensor.is_string() ? tensor.get<std::string>() + ", " : "";
  if (step.is_number_integer())
    absl::StrAppend(&line, " (", where, "step ", step.get<int64_t>() + 1, ")");
  return line + "\n";
}

std::string WorstTokenLine(const Json& token, const Json& largest) {
  if (!token.is_object() || !At(token, "/error").is_number()) return "";
  return absl::StrFormat(
      "  worst token: %d (document %d, position %d) in step %d, log-prob off by %.3g from %.4g, "
      "%s\n",
      token.value("position", int64_t{-1}), token.value("document", int64_t{-1}),
      token.value("document_position", int64_t{-1}), token.value("step", int64_t{-1}) + 1,
      token.value("error", 0.0), token.value("golden", 0.0), Floors(largest));
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
