// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_BASELINE_FOLDER_H_
#define HARNESS_CLI_BASELINE_FOLDER_H_

#include <filesystem>
#include <string>

namespace bkm {

inline constexpr char kBaselineHelp[] =
    "Folder of accepted runs (default: accepted/MATRIX beside the run directory)";

// `asked`; if empty, the folder accepted/MATRIX beside the run directory `run`.
inline std::filesystem::path BaselineFolder(const std::string& asked, const std::string& run,
                                            const std::string& matrix) {
  if (!asked.empty()) return asked;
  const std::filesystem::path folder = std::filesystem::absolute(run).lexically_normal();
  // "runs/bkm/" ends in an empty name.
  const std::filesystem::path beside =
      folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  return beside / "accepted" / matrix;
}

}  // namespace bkm

#endif  // HARNESS_CLI_BASELINE_FOLDER_H_
