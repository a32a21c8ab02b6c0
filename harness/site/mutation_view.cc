// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/mutation_view.h"

#include "absl/strings/str_cat.h"
#include "harness/site/table.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

Markup CountRow(const MutatedPair& pair) {
  const MutationCounts counts = CountsOf(pair.mutants);
  Markup row = {Element("th", {{"scope", "row"}}, pair.cell),
                Element("td", {{"class", "number"}}, absl::StrCat(pair.seed)),
                Element("td", {{"class", "number"}}, absl::StrCat(counts.total()))};
  for (size_t i = 0; i < kMutantOutcomeNames.size(); ++i) {
    row << Element("td", {{"class", "number"}},
                   absl::StrCat(counts.Of(static_cast<MutantOutcome>(i))));
  }
  return Element("tr", row);
}

Markup SurvivorItem(const Mutant& mutant) {
  const Mutation& mutation = mutant.mutation;
  return Element("li", {Element("code", absl::StrCat(mutation.file, ":", mutation.line)),
                        absl::StrCat(" (", Name(mutation.party), ", ", mutation.function, ", ",
                                     mutation.operation, ")"),
                        Element("pre", mutant.diff)});
}

}  // namespace

Markup MutationFigure(const std::vector<MutatedPair>& pairs) {
  if (pairs.empty()) return {};
  return Element("p", {"How far green can be trusted: of small changes made to the sources of "
                       "correct pairs, ",
                       RateText(CountsOf(pairs)), ". ",
                       Element("a", {{"href", "detection.html#mutations"}}, "Details"), "."});
}

Markup MutationSection(const std::vector<MutatedPair>& pairs) {
  if (pairs.empty()) return {};
  Markup rows, survivors;
  for (const MutatedPair& pair : pairs) {
    rows << CountRow(pair);
    for (const Mutant& mutant : pair.mutants) {
      if (mutant.outcome == MutantOutcome::kSurvived) survivors << SurvivorItem(mutant);
    }
  }
  std::vector<Column> columns = {"pair", {"seed", true}, {"mutants", true}};
  for (const char* outcome : kMutantOutcomeNames) columns.push_back({outcome, true});
  Markup section = {
      Element("h2", {{"id", "mutations"}}, "Mutations"),
      Element("p", absl::StrCat("One place of the subjects' own sources is changed, chosen by a "
                                "seed among the lines that ran. A mutant counts if it runs to its "
                                "end and changes an observed number: ",
                                RateText(CountsOf(pairs)), ".")),
      CaptionedTable("What became of the mutants of each pair.", columns, rows, "Mutations")};
  if (!survivors.empty()) {
    section << Element("h3", "Changes that no check saw")
            << Element("ul", {{"class", "plain"}}, survivors);
  }
  return section;
}

}  // namespace bkm
