// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// flake_table [SEARCHES] [SEED]: the table of simulated searches over flaky cells, in Markdown.
// Exit 1: a row misses its target, or a culprit was called certain and was wrong.
#include <cstdio>
#include <cstdlib>

#include "harness/search/flake_simulation.h"

namespace bkm {
namespace {

constexpr double kTarget = 0.975;

double Percent(int part, int whole) { return 100.0 * part / std::max(1, whole); }

int Main(int count, int seed) {
  std::printf("%d searches per row, seed %d\n\n", count, seed);
  std::printf(
      "| flaky cells | search | commits | right | with a culprit | without | wrong culprit named | "
      "surest of these | certain and wrong | runs per search |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  bool missed = false;
  for (const Noise& noise : FivePercent()) {
    for (const bool flaky : {false, true}) {
      for (const int commits : {16, 64, 256}) {
        const SimulationResult result = Simulate(
            {.commits = commits, .flaky = flaky, .noise = noise, .count = count, .seed = seed});
        std::printf(
            "| %s | %s | %d | %.2f %% | %.2f %% | %.2f %% | %.2f %% | %.3f %% | %d | %.1f |\n",
            noise.name.c_str(), flaky ? "bkm bisect --flaky" : "bkm bisect", commits,
            100 * result.right(), Percent(result.right_real, result.real),
            Percent(result.right_chance, result.chance), Percent(result.named_wrong, count),
            100 * result.surest_wrong, result.certain_wrong,
            static_cast<double>(result.runs) / count);
        std::fflush(stdout);
        missed |= result.right() <= kTarget || result.certain_wrong > 0;
      }
    }
  }
  return missed ? 1 : 0;
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10000;
  const int seed = argc > 2 ? std::atoi(argv[2]) : 1;
  if (count <= 0 || seed <= 0 || argc > 3) {
    std::fprintf(stderr, "flake_table: usage: flake_table [SEARCHES] [SEED]\n");
    return 2;
  }
  return bkm::Main(count, seed);
}
