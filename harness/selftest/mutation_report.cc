// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutation_report.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/status_macros.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr std::array kOutcomes = {MutantOutcome::kKilled, MutantOutcome::kSurvived,
                                  MutantOutcome::kCrashed, MutantOutcome::kIdentical,
                                  MutantOutcome::kUnmeasured};

void Add(MutationCounts& counts, const std::vector<Mutant>& mutants) {
  for (const Mutant& mutant : mutants) ++counts.by_outcome[mutant.outcome];
}

std::string Row(const std::string& name, const MutationCounts& counts) {
  std::string row = absl::StrFormat("%-20s%9d", name, counts.total());
  for (const MutantOutcome outcome : kOutcomes)
    absl::StrAppendFormat(&row, "%15d", counts.Of(outcome));
  return row + "\n";
}

std::string Header() {
  std::string header = absl::StrFormat("%-20s%9s", "operator", "mutants");
  for (const MutantOutcome outcome : kOutcomes)
    absl::StrAppendFormat(&header, "%15s", std::string(Name(outcome)));
  return header + "\n";
}

// What a person must look at: what was missed, and what the harness could not tell.
std::string LongText(const Mutant& mutant) {
  return absl::StrCat(
      "\n", mutant.outcome == MutantOutcome::kSurvived ? "SURVIVED" : "not measured", ": ",
      Name(mutant.mutation.party), " ", mutant.mutation.file, ":", mutant.mutation.line, " in ",
      mutant.mutation.function, ", ", mutant.mutation.operation, "\n", mutant.diff, mutant.verdict,
      mutant.message.empty() ? "" : ": ", mutant.message, "\n", mutant.cell, "\n");
}

OrderedJson ToJson(const MutationCounts& counts) {
  OrderedJson json = {{"mutants", counts.total()}};
  for (const auto& [key, outcome] : {std::pair("killed", MutantOutcome::kKilled),
                                     std::pair("survived", MutantOutcome::kSurvived),
                                     std::pair("crashed", MutantOutcome::kCrashed),
                                     std::pair("bit_identical", MutantOutcome::kIdentical),
                                     std::pair("not_measured", MutantOutcome::kUnmeasured)})
    json[key] = counts.Of(outcome);
  if (counts.rate()) json["rate"] = *counts.rate();
  return json;
}

}  // namespace

int MutationCounts::Of(MutantOutcome outcome) const {
  const auto found = by_outcome.find(outcome);
  return found == by_outcome.end() ? 0 : found->second;
}

int MutationCounts::total() const {
  int total = 0;
  for (const auto& [outcome, count] : by_outcome) total += count;
  return total;
}

int MutationCounts::counted() const {
  return Of(MutantOutcome::kKilled) + Of(MutantOutcome::kSurvived);
}

std::optional<double> MutationCounts::rate() const {
  if (counted() == 0) return std::nullopt;
  return static_cast<double>(Of(MutantOutcome::kKilled)) / counted();
}

MutationCounts CountsOf(const std::vector<Mutant>& mutants) {
  MutationCounts counts;
  Add(counts, mutants);
  return counts;
}

MutationCounts CountsOf(const std::vector<MutatedPair>& pairs) {
  MutationCounts counts;
  for (const MutatedPair& pair : pairs) Add(counts, pair.mutants);
  return counts;
}

std::string RateText(const MutationCounts& counts) {
  if (!counts.rate()) return "no mutant ran to its end with a changed number";
  return absl::StrFormat("%d of %d mutants that changed a number are red (%.1f %%)",
                         counts.Of(MutantOutcome::kKilled), counts.counted(), 100 * *counts.rate());
}

std::string MutationText(const std::vector<MutatedPair>& pairs, double at_least) {
  std::string text, survivors, unmeasured;
  for (const MutatedPair& pair : pairs) {
    absl::StrAppend(&text, pair.cell, "\n", pair.possible,
                    " possible mutations of lines that ran; ", pair.unreached,
                    " of lines that never ran were left out\n", Header());
    std::map<std::string, std::vector<Mutant>> by_operator;
    for (const Mutant& mutant : pair.mutants) {
      by_operator[mutant.mutation.operation].push_back(mutant);
      if (mutant.outcome == MutantOutcome::kUnmeasured) unmeasured += LongText(mutant);
      if (mutant.outcome == MutantOutcome::kSurvived) survivors += LongText(mutant);
    }
    for (const auto& [name, mutants] : by_operator) text += Row(name, CountsOf(mutants));
    absl::StrAppend(&text, Row("all", CountsOf(pair.mutants)), RateText(CountsOf(pair.mutants)),
                    "\n\n");
  }
  survivors = unmeasured + survivors;
  absl::StrAppend(&text, survivors, survivors.empty() ? "" : "\n", RateText(CountsOf(pairs)),
                  absl::StrFormat("; at least %.1f %% are required\n", 100 * at_least));
  return Printable(text);
}

void Describe(Fields& fields, MutatedPair& pair) {
  fields.Field("cell", pair.cell);
  fields.Int("seed", pair.seed, 0, std::numeric_limits<int64_t>::max());
  fields.Field("possible", pair.possible);
  fields.Field("unreached", pair.unreached);
  fields.Derived("counts", ToJson(CountsOf(pair.mutants)));
  fields.Field("mutants", pair.mutants);
}

OrderedJson MutationJson(const std::vector<MutatedPair>& pairs, double at_least) {
  OrderedJson list = OrderedJson::array();
  for (const MutatedPair& pair : pairs) list.push_back(WriteFields(pair));
  return {{"schema", 1},
          {"counts", ToJson(CountsOf(pairs))},
          {"at_least", at_least},
          {"pairs", std::move(list)}};
}

absl::StatusOr<std::vector<MutatedPair>> ReadMutationReport(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  if (!json.is_object() || json.value("schema", Json()) != Json(1) || !json.contains("pairs") ||
      !json["pairs"].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), ": is not a report of schema 1 of bkm selftest --mutate --json"));
  }
  std::vector<MutatedPair> pairs;
  for (const Json& pair : json["pairs"]) {
    ASSIGN_OR_RETURN(pairs.emplace_back(), ReadFields<MutatedPair>(pair, path.string()));
  }
  return pairs;
}

}  // namespace bkm
