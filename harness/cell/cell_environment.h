// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_ENVIRONMENT_H_
#define HARNESS_CELL_CELL_ENVIRONMENT_H_

#include <filesystem>
#include <map>
#include <string>

namespace bkm {

// Where HOME points while modules are preloaded. Some (huggingface_hub) freeze paths below HOME
// into constants then; in a cell's private /tmp this is a link to the cell's own home.
inline constexpr char kPreloadHome[] = "/tmp/.bkm-home";

// The environment variables of a cell: none of the user's, so that a verdict does not depend on who
// ran it. `python` is the runtime's interpreter.
std::map<std::string, std::string> CellEnvironment(const std::filesystem::path& python);

// Replaces this process's environment by CellEnvironment. Call it before Python starts: modules
// read it when they are imported.
void EnterCellEnvironment(const std::filesystem::path& python);

// What differs per cell: HOME and TMPDIR below its `work` folder.
std::map<std::string, std::string> CellFolders(const std::filesystem::path& work);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_ENVIRONMENT_H_
