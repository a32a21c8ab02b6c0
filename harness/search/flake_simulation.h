// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_FLAKE_SIMULATION_H_
#define HARNESS_SEARCH_FLAKE_SIMULATION_H_

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "harness/search/investigation.h"
#include "harness/search/search_world.h"

namespace bkm {

// Simulated searches of bkm bisect over flaky cells, in the mix of Henderson et al., Flake Aware
// Culprit Finding, ICST 2023: 60 % of the breakages have a culprit, and 40 % were chance. The
// newer end was seen broken and the older end was seen working, as when somebody starts a search.

// How often a run ends on the wrong side.
struct Noise {
  std::string name;
  double fails_before = 0;  // a run without the culprit fails
  double works_after = 0;   // a run with the culprit works
  // Share of the commits between the ends that fail half of the time instead. An end that does so
  // would be a culprit of its own: it made the cell flaky.
  double flaky_commits = 0;
};

struct SimulatedSearches {
  int commits = 64;
  bool flaky = false;  // bkm bisect --flaky
  Noise noise;
  int count = 1000;
  int seed = 1;
};

struct SimulationResult {
  int real = 0, chance = 0;              // searches by the cause of the breakage
  int right_real = 0, right_chance = 0;  // of those, with the right answer
  int named_wrong = 0;                   // a commit is named that is not the culprit
  int certain = 0, certain_wrong = 0;    // a commit is named at kCertain and more
  double surest_wrong = 0;               // the largest confidence of a wrong culprit
  int64_t runs = 0;

  double right() const {
    return static_cast<double>(right_real + right_chance) / std::max(1, real + chance);
  }
};

inline constexpr double kCertain = 0.9999;
inline constexpr double kShareOfRealBreakages = 0.6;

inline SimulationResult Simulate(const SimulatedSearches& searches) {
  const Noise& noise = searches.noise;
  const int late = searches.commits - 1;
  const CommitGraph graph(Line(searches.commits));
  SimulationResult result;
  for (int i = 0; i < searches.count; ++i) {
    const int seed = searches.seed * 1'000'003 + i;
    const auto draw = [seed](int commit, int run) {
      std::seed_seq sequence{seed, commit, run};
      std::mt19937 random(sequence);
      return std::uniform_real_distribution<>()(random);
    };
    const bool is_real = draw(-1, 0) < kShareOfRealBreakages;
    const int culprit = 1 + static_cast<int>(draw(-1, 1) * late);
    const auto run = [&](const Trial& trial) {
      if (trial.run == 1 && trial.commit == late) return Broken();
      if (trial.run == 1 && trial.commit == 0) return Ok();
      const bool after = is_real && trial.commit >= culprit;
      const bool is_end = trial.commit == 0 || trial.commit == late;
      const bool is_flaky = !is_end && draw(trial.commit, 0) < noise.flaky_commits;
      const double fails = after ? 1 - noise.works_after : is_flaky ? 0.5 : noise.fails_before;
      return draw(trial.commit, trial.run) < fails ? Broken() : Ok();
    };
    Investigation search(graph, {.late = late, .early = 0, .flaky = searches.flaky});
    SearchWorld world(run, /*slots=*/1 + i % 3, seed);
    world.Run(search);

    const BisectionResult& found = search.result().bisection;
    const bool named = found.status == SearchStatus::kFound;
    const bool right =
        is_real ? named && found.culprit == culprit : found.status == SearchStatus::kNone;
    const double confidence = search.result().confidence.value_or(1);
    ++(is_real ? result.real : result.chance);
    (is_real ? result.right_real : result.right_chance) += right;
    result.certain += named && confidence >= kCertain;
    if (named && !right) {
      ++result.named_wrong;
      result.certain_wrong += confidence >= kCertain;
      result.surest_wrong = std::max(result.surest_wrong, confidence);
    }
    result.runs += static_cast<int64_t>(world.asked.size());
  }
  return result;
}

// The noise of the table: 5 % of all runs.
inline std::vector<Noise> FivePercent() {
  return {
      {.name = "5 % of the runs fail by chance", .fails_before = 0.05},
      {.name = "5 % of the runs fail or work by chance", .fails_before = 0.05, .works_after = 0.05},
      {.name = "5 % of the commits fail half of the time", .flaky_commits = 0.05}};
}

}  // namespace bkm

#endif  // HARNESS_SEARCH_FLAKE_SIMULATION_H_
