// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// locks_bench MATRIX AT_ONCE resolves the runtimes of a matrix, AT_ONCE at a time, and prints how
// many there are and how many seconds that took. ci/bench-locks runs it with empty caches.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "harness/base/clock.h"
#include "harness/base/status_macros.h"
#include "harness/runner/preparation.h"

namespace bkm {
namespace {

class StderrObserver : public RunObserver {
 public:
  void OnSetUp(const std::string& what) override { std::fprintf(stderr, "  %s\n", what.c_str()); }
};

absl::Status Run(const std::filesystem::path& file, int at_once) {
  ASSIGN_OR_RETURN(const Matrix matrix, ReadMatrix(file));
  StderrObserver observer;
  const char* mirrors = std::getenv("BKM_GIT_MIRRORS");
  ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                   Preparation::Create(matrix,
                                       {.mirrors = mirrors ? mirrors : "",
                                        .matrix_folder = file.parent_path(),
                                        .limits = {.resolutions = at_once}},
                                       observer));
  ASSIGN_OR_RETURN(std::vector<PlannedCell> plan,
                   ExpandMatrix(matrix, {}, preparation->Environment()));
  std::erase_if(plan, [](const PlannedCell& planned) { return !planned.included; });
  const RealClock clock;
  const absl::Duration start = clock.Elapsed();
  ASSIGN_OR_RETURN(const auto resolutions, preparation->ResolveAll(plan));
  const double seconds = absl::ToDoubleSeconds(clock.Elapsed() - start);
  for (const auto& [key, resolution] : resolutions) RETURN_IF_ERROR(resolution.status());
  std::printf("%zu %.1f\n", resolutions.size(), seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: locks_bench MATRIX AT_ONCE\n");
    return 2;
  }
  const absl::Status status = bkm::Run(std::filesystem::absolute(argv[1]), std::atoi(argv[2]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "locks_bench: %s\n", std::string(status.message()).c_str());
  return 2;
}
