// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/run_commands.h"

#include "absl/strings/str_cat.h"

namespace bkm {

absl::Status NeedsWholeProgram(const char* option) {
  return absl::UnimplementedError(absl::StrCat(
      option, " is not in this program (bkm_run): start bkm, or tools/bkm, which builds it"));
}

Commands RunCommands(const WholeProgram& whole) {
  Commands commands;
  commands.push_back(MakeRunCommand(whole));
  commands.push_back(MakePlanCommand(whole.urgent_first));
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeJudgeCommand());
  commands.push_back(MakeReplayCommand());
  commands.push_back(MakeCostCommand());
  return commands;
}

}  // namespace bkm
