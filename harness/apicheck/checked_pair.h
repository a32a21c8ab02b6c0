// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_CHECKED_PAIR_H_
#define HARNESS_APICHECK_CHECKED_PAIR_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/apicheck/api_check.h"
#include "harness/base/files.h"

namespace bkm {

// A test that writes an engine `eng` and a library `lib` file by file and checks them. The entry is
// importing eng.main and making eng.main.Engine().
class CheckedPair : public testing::Test {
 protected:
  CheckedPair() : folder_(std::filesystem::path(testing::TempDir()) / UniqueName()) {
    EXPECT_TRUE(RemoveTree(folder_).ok());
    Engine("__init__.py", "");
    Library("__init__.py", "");
  }

  void Engine(const std::string& path, const std::string& text) {
    EXPECT_TRUE(WriteFile(folder_ / "engine/eng" / path, text).ok());
  }
  void Library(const std::string& path, const std::string& text) {
    EXPECT_TRUE(WriteFile(folder_ / "library/lib" / path, text).ok());
  }
  // Writes eng/main.py: `top`, then an Engine whose constructor runs `body` (indented by 8).
  void EngineThat(const std::string& top, const std::string& body) {
    Engine("main.py", absl::StrCat(top, "\nclass Engine:\n    def __init__(self):\n", body, "\n"));
  }

  // "construct eng/main.py:5 lib.f(x=): has no keyword 'x' (lib/__init__.py:1)"
  std::vector<std::string> Violations() {
    std::vector<std::string> lines;
    for (const Violation& v : FoundViolations()) {
      lines.push_back(absl::StrCat(Name(v.grade), " ", v.engine_file, ":", v.engine_line, " ",
                                   v.asked, ": ", v.problem,
                                   v.where.empty() ? "" : absl::StrCat(" (", v.where, ")")));
    }
    return lines;
  }
  std::vector<Violation> FoundViolations() {
    auto violations = check().Check(engine_tree_, library_tree_);
    EXPECT_TRUE(violations.ok()) << violations.status();
    return violations.ok() ? *std::move(violations) : std::vector<Violation>();
  }
  std::filesystem::path library_folder() const { return folder_ / "library"; }
  PairGrade Graded() {
    const auto grade = check().GradeOf(engine_tree_, library_tree_);
    EXPECT_TRUE(grade.ok()) << grade.status();
    return grade.value_or(PairGrade::kUnknown);
  }

 private:
  static std::string UniqueName() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return absl::StrCat(test->test_suite_name(), ".", test->name());
  }
  // A new check of both trees as they are now.
  ApiCheck& check() {
    auto tables = SymbolTables::Open("/usr/bin/python3", folder_ / "cache");
    EXPECT_TRUE(tables.ok()) << tables.status();
    tables_ = *std::move(tables);
    engine_tree_ = *FolderTree(*tables_, folder_ / "engine", "eng");
    library_tree_ = *FolderTree(*tables_, folder_ / "library", "lib");
    check_ = std::make_unique<ApiCheck>(*tables_,
                                        EngineEntry{{"eng.main"}, "Engine", {"initialize"}}, "lib");
    return *check_;
  }

  const std::filesystem::path folder_;
  std::unique_ptr<SymbolTables> tables_;
  std::unique_ptr<ApiCheck> check_;
  Tree engine_tree_;
  Tree library_tree_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_CHECKED_PAIR_H_
