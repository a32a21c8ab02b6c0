// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/rank_view.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/site/table.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

constexpr size_t kMostRanks = 64;
constexpr size_t kMostRows = 200;
constexpr char kWitness[] = "witness";  // collectives of bkm itself

Markup TextCell(const std::string& text) { return Element("td", text); }
Markup CodeCell(const std::string& text) {
  return Element("td", text.empty() ? Markup() : Element("code", text));
}

// "0 to 2, then 0 and 1": the documents of a rank in each step.
std::string DocumentsText(const ObservedRank& rank) {
  std::vector<std::string> steps;
  for (const ObservedShare& share : rank.documents) {
    steps.push_back(share.count == 0 ? "none"
                    : share.count == 1
                        ? absl::StrCat(share.first)
                        : absl::StrCat(share.first, " to ", share.first + share.count - 1));
  }
  return absl::StrJoin(steps, "; ");
}

std::string EndText(const ObservedRank& rank) {
  std::string text = rank.ended == "done" ? "finished" : rank.ended;
  if (!rank.waits.empty()) absl::StrAppend(&text, " ", rank.waits);
  if (rank.ended != "done") absl::StrAppend(&text, ", at ", rank.stage);
  if (!rank.exception.empty()) absl::StrAppend(&text, ": ", rank.exception);
  return text;
}

Markup RankTable(const std::vector<ObservedRank>& ranks) {
  Markup rows;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i) {
    const ObservedRank& rank = ranks[i];
    rows << Element(
        "tr", {Element("th", {{"scope", "row"}}, absl::StrCat("rank ", rank.rank)),
               TextCell(rank.data_rank < 0 ? "not seen"
                                           : absl::StrCat(rank.data_rank, " of ", rank.data_ranks)),
               TextCell(DocumentsText(rank)), TextCell(EndText(rank))});
  }
  return CaptionedTable("What each rank did. Its documents are those of each step, by number.",
                        {"rank", "data-parallel rank", "documents by step", "ended"}, rows,
                        "Ranks");
}

Markup DifferenceTable(const Observation& observation) {
  const auto& differences = observation.rank_differences;
  if (differences.empty()) return {};
  Markup rows;
  for (size_t i = 0; i < std::min(differences.size(), kMostRows); ++i) {
    const ObservedRankDifference& one = differences[i];
    rows << Element(
        "tr", {TextCell(one.when), CodeCell(one.name), TextCell(absl::StrCat("rank ", one.rank)),
               NumberCell(one.largest ? absl::StrFormat("%.3g", *one.largest)
                                      : "another shape, or none")});
  }
  return CaptionedTable(
      "What ranks should hold alike, and do not: a rank against a lower one (the first 20).",
      {"when", "tensor", "rank", {"largest difference", true}}, rows, "Differences between ranks");
}

// Calls and elements of one kind of collective, by rank.
struct Calls {
  std::map<int64_t, std::pair<int64_t, int64_t>> by_rank;
  std::string Text(bool elements, size_t ranks) const {
    const auto number = [&](const auto& one) { return elements ? one.second : one.first; };
    const bool alike = by_rank.size() == ranks &&
                       std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& one) {
                         return number(one.second) == number(by_rank.begin()->second);
                       });
    if (alike) return absl::StrCat(number(by_rank.begin()->second));
    return absl::StrJoin(by_rank, ", ", [&](std::string* out, const auto& one) {
      absl::StrAppend(out, "rank ", one.first, ": ", number(one.second));
    });
  }
};

int PlaceOf(const std::string& stage) {
  if (stage == kWitness) return INT32_MAX;
  const auto known = StageFromName(stage);
  return known ? static_cast<int>(*known) : INT32_MAX - 1;
}

Markup CollectiveTable(const std::vector<ObservedRank>& ranks) {
  using Key = std::tuple<int, std::string, std::string, std::string, int64_t, std::string>;
  std::map<Key, Calls> kinds;
  for (const ObservedRank& rank : ranks) {
    for (const ObservedCollective& one : rank.collectives) {
      kinds[{PlaceOf(one.stage), one.stage, one.op, one.reduce, one.ranks, one.dtype}]
          .by_rank[rank.rank] = {one.calls, one.elements};
    }
  }
  if (kinds.empty()) return {};
  Markup rows;
  size_t shown = 0;
  for (const auto& [key, calls] : kinds) {
    if (++shown > kMostRows) break;
    const auto& [place, stage, op, reduce, group, dtype] = key;
    rows << Element("tr",
                    {CodeCell(op), TextCell(reduce), NumberCell(group ? absl::StrCat(group) : "?"),
                     TextCell(dtype), NumberCell(calls.Text(/*elements=*/true, ranks.size())),
                     NumberCell(calls.Text(/*elements=*/false, ranks.size())),
                     TextCell(stage == kWitness ? "bkm's own" : stage)});
  }
  return {
      CaptionedTable("Collectives of all steps, by what the ranks were doing. Elements are those "
                     "of all calls together.",
                     {"operation",
                      "reduction",
                      {"group", true},
                      "type",
                      {"elements", true},
                      {"calls", true},
                      "stage"},
                     rows, "Collectives"),
      shown > kMostRows ? Element("p", {{"class", "small"}},
                                  absl::StrCat("and ", kinds.size() - kMostRows, " more"))
                        : Markup(),
      Element("p", {{"class", "soft small"}},
              "Collectives that C++ code starts by itself are not recorded.")};
}

}  // namespace

std::string LayoutSentence(const Layout& layout) {
  if (layout == Layout()) return "1 rank";
  return absl::StrCat(LayoutText(layout), ": ", layout.ranks(), " ranks, ", layout.data_ranks(),
                      " of them data-parallel");
}

Markup RanksSection(const CellEvidence& evidence) {
  if (!evidence.observation || evidence.observation->ranks.empty()) return {};
  const Observation& observation = *evidence.observation;
  Markup section = Element("h2", {{"id", "ranks"}}, "Ranks");
  if (!observation.rank_ended.empty())
    section << Element(
        "p", absl::StrCat("The cell ended with the process of ", observation.rank_ended, "."));
  section << RankTable(observation.ranks) << DifferenceTable(observation);
  const bool have_finished =
      std::all_of(observation.ranks.begin(), observation.ranks.end(),
                  [](const ObservedRank& rank) { return rank.ended == "done"; });
  if (observation.rank_differences.empty() && have_finished)
    section << Element("p", "Ranks hold the same bits of everything that they share.");
  return {section, CollectiveTable(observation.ranks)};
}

}  // namespace bkm
