// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/ray/cell_server.h"

namespace bkm {
namespace {

class ServeCommand : public CliCommand {
 public:
  const char* name() const override { return "serve"; }
  const char* summary() const override {
    return "Run cells for a bkm on another machine; --executor ray starts it on each node";
  }
  const char* examples() const override {
    return "Reads JSON lines from stdin and writes JSON lines to stdout, until stdin ends "
           "(harness/ray/README.md). It is not a command for people.\n"
           "Examples:\n"
           "  bkm serve";
  }
  void AddOptions(CLI::App&) override {}

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(ServeCells(installation));
    return kExitAsExpected;
  }
};

}  // namespace

std::unique_ptr<CliCommand> MakeServeCommand() { return std::make_unique<ServeCommand>(); }

}  // namespace bkm
