// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_HISTORY_FIXTURE_H_
#define HARNESS_CLI_HISTORY_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/shape_check.h"
#include "harness/source/git_fixture.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {

// A library whose history the test writes, one commit per day from 2026-03-01 on, and an engine
// that works. `engine` is Python code at the end of the engine's module.
class HistoryFixture : public ::testing::Test {
 protected:
  static constexpr char kFile[] = "fake_library/__init__.py";

  explicit HistoryFixture(const std::string& engine) : library_(bkm_.folder() / "fake_library") {
    good_ = *ReadFile(bkm_.packages() / "passes/library" / kFile);
    bkm_.WritePair("searched", engine);
    std::filesystem::create_directories(bkm_.folder() / "mirrors");
    std::filesystem::create_directory_symlink(library_.git_dir(),
                                              bkm_.folder() / "mirrors/fake_library.git");
    matrix_ = bkm_.folder() / "fixtures/matrices/history.json";
    const Json group = {
        {"engine", {{"kind", "fixture"}, {"subjects", {"path:../packages/searched/engine"}}}},
        {"library", {"git:fake_library@main"}},
        {"runtime", {"bare"}},
        {"probe", {{"attention", {"flex"}}, {"steps", 1}}}};
    EXPECT_TRUE(WriteFile(matrix_, ToText(Json{{"schema", 1},
                                               {"name", "history"},
                                               {"sources",
                                                {{"fake_library", {{"package", "fake_library"}}}}},
                                               {"groups", {group}}}))
                    .ok());
  }

  // A commit with the good library followed by `more`; its title is "Commit N (#N)".
  std::string Commit(const std::string& more = "") {
    ++count_;
    library_.Write(kFile, absl::StrCat(good_, "\n# ", count_, "\n", more));
    return library_.Commit(absl::StrCat("Commit ", count_, " (#", count_, ")"), Day());
  }
  std::string Day() const { return absl::StrCat("2026-03-", count_ < 10 ? "0" : "", count_); }

  std::vector<std::string> CommandLine(const std::string& command,
                                       const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {command,        matrix_,
                                          "--axis",       "library",
                                          "--git-mirror", (bkm_.folder() / "mirrors").string(),
                                          "--out",        bkm_.out().string(),
                                          "--jobs",       "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const BkmUnderTest bkm_;
  GitFixture library_;
  std::string good_;
  std::filesystem::path matrix_;
  int count_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_CLI_HISTORY_FIXTURE_H_
