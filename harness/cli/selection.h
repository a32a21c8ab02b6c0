// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_SELECTION_H_
#define HARNESS_CLI_SELECTION_H_

#include <CLI/CLI.hpp>
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
// --filter restricts either.
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
  absl::StatusOr<Json> AdHocProbe() const;

  std::string matrix_path_;
  std::vector<std::string> engines_;
  std::vector<std::string> libraries_;
  std::vector<std::string> attentions_;
  std::vector<std::string> models_;
  std::vector<std::string> precisions_;
  std::vector<std::string> runtimes_;
  std::vector<std::string> torch_;
  std::vector<std::string> relax_;
  std::vector<std::string> engine_options_;
  std::string documents_;
  std::vector<std::string> heads_;
  std::vector<std::string> inputs_;
  std::vector<int> micro_batches_;
  std::vector<std::string> optimizers_;
  bool leftover_checkpoint_ = false;
  bool export_weights_ = false;
  bool resume_checkpoint_ = false;
  std::vector<std::string> checkpoints_, rope_keys_, configs_, layouts_, temperatures_;
  bool entropy_ = false;
  std::vector<std::string> filters_;
  std::string git_mirror_;
  int steps_ = 0;
  std::vector<int64_t> seeds_;
  int timeout_s_ = 0;
  int memory_mib_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_CLI_SELECTION_H_
