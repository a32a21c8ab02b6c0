// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <chrono>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/store/garbage.h"

namespace bkm {
namespace {

class CleanCommand : public CliCommand {
 public:
  const char* name() const override { return "clean"; }
  const char* summary() const override {
    return "Remove cached sources, environments, probes and observations that no recent run used";
  }
  const char* examples() const override {
    return "A later run makes again what it needs. Run directories are not touched.\n"
           "Example: bkm clean --older-than 30";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--older-than", days_, "Days since the last use")
        ->check(CLI::Range(1, 36500))
        ->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  absl::StatusOr<int> Run() override {
    const auto before = std::chrono::system_clock::now() - std::chrono::hours(24 * days_);
    ASSIGN_OR_RETURN(const std::vector<std::string> removed,
                     CollectGarbage(CacheDirectory(), before));
    if (json_) {
      Print(ToText(Json{{"cache", CacheDirectory().string()}, {"removed", removed}}));
      return kExitAsExpected;
    }
    for (const std::string& folder : removed) Printf("%s\n", folder.c_str());
    Printf("%zu folders removed from %s\n", removed.size(), CacheDirectory().c_str());
    return kExitAsExpected;
  }

 private:
  int days_ = 30;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeCleanCommand() { return std::make_unique<CleanCommand>(); }

}  // namespace bkm
