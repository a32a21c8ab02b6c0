// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TESTING_REAL_BKM_H_
#define HARNESS_TESTING_REAL_BKM_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"
#include "harness/testing/no_network.h"

namespace bkm {

// The real bkm on real engines and libraries, with the user's cache and the mirrors of
// $BKM_GIT_MIRRORS, for tests that need both. A test target names what it starts in its `data`.

// $BKM_GIT_MIRRORS; empty: there are none, and the test skips.
std::filesystem::path Mirrors();

// Runs `git ARGUMENTS`; an error says what git complained of.
absl::Status RunGit(std::vector<std::string> arguments);

// A bare repository FOLDER/NAME.git without branches that borrows the objects of the mirror of that
// name: a mirror may be shallow and lack some, so no clone succeeds.
absl::Status BorrowMirror(const std::string& name, const std::filesystem::path& folder);

// `bkm ARGUMENTS` with its environment changed by `environment`; whatever its exit code is.
absl::StatusOr<ProcessResult> RunRealBkm(std::vector<std::string> arguments,
                                         std::map<std::string, std::string> environment = {});

// A script of the checkout, by its path there, with this bkm as its $BKM.
absl::StatusOr<ProcessResult> RunRealScript(const std::string& script,
                                            const std::vector<std::string>& arguments);

// `arguments`, and a --filter for each of `filters`.
std::vector<std::string> Filtered(std::vector<std::string> arguments,
                                  const std::vector<std::string>& filters);

// `bkm run ARGUMENTS` into the folder `name` of the test's own; its run.json, or why there is none.
// An exit code up to `worst` is not an error: 1 if some verdicts differ from what is expected, 2 if
// a cell ended by harness-error.
absl::StatusOr<Json> RunRealCells(std::vector<std::string> arguments, const std::string& name,
                                  std::map<std::string, std::string> environment = {},
                                  int worst = 1);
// Where RunRealCells puts the run `name`.
std::filesystem::path RealRunFolder(const std::string& name);

}  // namespace bkm

#endif  // HARNESS_TESTING_REAL_BKM_H_
