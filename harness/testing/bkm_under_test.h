// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TESTING_BKM_UNDER_TEST_H_
#define HARNESS_TESTING_BKM_UNDER_TEST_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/subprocess.h"

namespace bkm {

// The real bkm with the real cell_worker, in a folder of its own that holds a copy of fixtures/ and
// an empty cache. Nothing of the user's reaches it, and no network is needed.
class BkmUnderTest {
 public:
  BkmUnderTest();
  // Removes the folder; kept in the test's undeclared outputs when the test failed.
  ~BkmUnderTest();
  BkmUnderTest(const BkmUnderTest&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // A checkout, as far as bkm needs one. A copy: links into the real one would lead a cell out of
  // what it may read.
  std::filesystem::path root() const { return folder_ / "root"; }
  std::filesystem::path packages() const { return folder_ / "fixtures/packages"; }
  std::filesystem::path hostile_matrix() const {
    return folder_ / "fixtures/matrices/hostile.json";
  }
  // Where runs go unless told: --out of Run's and Start's commands.
  std::filesystem::path out() const { return folder_ / "out"; }

  // A matrix of kind `fixture` with the pairs of these behaviours, below fixtures/matrices.
  std::filesystem::path WriteMatrix(const std::vector<std::string>& behaviours,
                                    int timeout_s = 30) const;
  // A further pair: passes, but for what its engine does on import.
  void WritePair(const std::string& behaviour, const std::string& engine_import) const;

  // `bkm ARGUMENTS` in folder(), with its environment changed by `environment`.
  Command MakeCommand(std::vector<std::string> arguments,
                      std::map<std::string, std::string> environment = {}) const;
  ProcessResult Run(std::vector<std::string> arguments,
                    std::map<std::string, std::string> environment = {}) const;

  // Starts it, and kills it with its process group after this time. False if it ended before. What
  // it says goes to `log`.
  bool RunAndKill(std::vector<std::string> arguments,
                  std::map<std::string, std::string> environment, std::chrono::microseconds after,
                  const std::filesystem::path& log) const;

  // For Run: a machine whose driver lists one GPU, an H100 that nothing can use.
  std::map<std::string, std::string> EnvironmentWithGpu() const;

  // run.json of out().
  Json ReadRun() const;
  // The one cell of `run` whose engine is fixtures/packages/<behaviour>/engine.
  static Json CellOf(const Json& run, const std::string& behaviour);
  std::filesystem::path CellFolder(const std::string& behaviour) const;
  // Where this test's copies of programs and data are, and the text without it.
  std::string WithoutPaths(std::string text) const;
  // Command lines of processes of this machine that belong to this object: started by its bkm, or
  // by what that started.
  std::vector<std::string> RunningProcesses() const;

 private:
  std::filesystem::path folder_;
};

// A file of the test's runfiles.
std::filesystem::path Runfile(const std::string& path);

// What can differ between two runs of the same cells on two machines is gone: times, hashes of the
// machine's packages, folders, how much over a limit a cell was.
Json StableRun(const BkmUnderTest& bkm, const Json& run);

// Whether the file's writing was cut off (WriteFile): it keeps its temporary name, and nothing
// reads it.
bool IsCutOff(const std::filesystem::path& file);

// What differs, as a JSON patch; empty when nothing does. Two whole runs are too long to read.
std::string Difference(const Json& wanted, const Json& got);

}  // namespace bkm

#endif  // HARNESS_TESTING_BKM_UNDER_TEST_H_
