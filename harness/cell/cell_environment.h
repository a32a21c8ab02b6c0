// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_ENVIRONMENT_H_
#define HARNESS_CELL_CELL_ENVIRONMENT_H_

#include <filesystem>
#include <map>
#include <string>

namespace bkm {

// HOME during the preload. Some modules (huggingface_hub) keep paths below HOME in constants at
// import; in a cell's private /tmp this path is a link to the cell's own home.
inline constexpr char kPreloadHome[] = "/tmp/.bkm-home";

// The environment variables of a cell. None is the user's, so a verdict does not depend on who ran
// the cell. A worker is started with them, because modules read them at import. `python` is the
// runtime's interpreter.
std::map<std::string, std::string> CellEnvironment(const std::filesystem::path& python);

// The variables that differ between cells: HOME and TMPDIR, below the cell's `work` folder.
std::map<std::string, std::string> CellFolders(const std::filesystem::path& work);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_ENVIRONMENT_H_
