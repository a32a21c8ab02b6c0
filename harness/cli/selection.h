// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_SELECTION_H_
#define HARNESS_CLI_SELECTION_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/matrix.h"
#include "harness/model/cell.h"

namespace bkm {

// Help of --git-mirror in every command.
inline constexpr char kGitMirrorHelp[] =
    "Folder of bare repositories NAME.git, read instead of the network (default: $BKM_GIT_MIRRORS)";
// `asked`, the value of --git-mirror, else $BKM_GIT_MIRRORS. May be empty.
std::string GitMirrorFolder(const std::string& asked);

// The cells that a command works on: those of a matrix file, or every combination of options;
// --filter restricts either. The flags and their help are those of the table of dimensions;
// engines, libraries, relaxed requirements and engine options have a syntax of their own.
class Selection {
 public:
  void AddOptions(CLI::App& app);

  absl::StatusOr<Matrix> LoadMatrix() const;
  absl::StatusOr<std::vector<CellFilter>> Filters() const;
  // --git-mirror, else $BKM_GIT_MIRRORS; may be empty.
  std::string GitMirrors() const;
  // The matrix file, absolute; empty without a matrix file.
  std::filesystem::path MatrixFile() const;
  // The folder of the matrix file, which may hold runtimes/. Empty without a matrix file.
  std::filesystem::path MatrixFolder() const { return MatrixFile().parent_path(); }

 private:
  // The matrix file as it was asked for. A bare word that is not a file names a matrix that came
  // with bkm: "quickstart".
  std::filesystem::path MatrixPath() const;
  absl::StatusOr<Matrix> AdHoc() const;
  absl::StatusOr<Json> AdHocGroup(const std::string& engine) const;
  absl::StatusOr<Json> AdHocEngineOptions() const;

  std::string matrix_path_;
  std::vector<const CLI::Option*> of_own_cells_;  // options that a matrix file leaves no room for
  std::vector<std::string> engines_, libraries_, relax_, engine_options_;
  // What was asked for of each dimension that has a flag, by its name.
  std::map<std::string, std::vector<std::string>> values_;  // FlagForm::kValues
  std::map<std::string, std::string> value_;                // FlagForm::kValue
  std::map<std::string, bool> switches_;                    // FlagForm::kSwitch
  std::vector<std::string> filters_;
  std::string git_mirror_;
  int timeout_s_ = 0;
  int memory_mib_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_CLI_SELECTION_H_
