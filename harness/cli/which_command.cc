// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/apicheck/map_answer.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/selection.h"

namespace bkm {
namespace {

class WhichCommand : public CliCommand {
 public:
  const char* name() const override { return "which"; }
  const char* summary() const override {
    return "List which versions work with a given version, according to a map";
  }
  const char* examples() const override {
    return "Reads the map that bkm map made. Each answer says how it is known. \"ran\": the "
           "pair itself ran. \"same asks\": a pair ran whose engine asks the same of the "
           "library, according to its sources. \"by the sources only\": no such pair ran.\n"
           "Exit 0: a version works. Exit 1: no version is known to work.\n"
           "Examples:\n"
           "  bkm which --engine git:verl@v0.8.0\n"
           "  bkm which --library git:torchtitan@main --map maps/verl-torchtitan --json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--engine", engine_, "Engine version: git:NAME@REV");
    app.add_option("--library", library_, "Library version: git:NAME@REV");
    app.add_option("--map", folder_, "Folder of the map (default: maps/verl-torchtitan)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    if (engine_.empty() == library_.empty()) {
      return absl::InvalidArgumentError(
          "name exactly one version: --engine git:verl@v0.8.0, or --library git:torchtitan@main");
    }
    const std::filesystem::path path = std::filesystem::path(folder_) / "map.json";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(
          absl::StrCat(path.string(),
                       " does not exist: make it with bkm map, or name another folder with --map"));
    }
    ASSIGN_OR_RETURN(const ApiMap map, ReadApiMap(path));
    const bool of_engine = !engine_.empty();
    const SourceCatalog catalog;
    GitSources git(catalog, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    ASSIGN_OR_RETURN(const int asked,
                     PlaceOnMap(map, of_engine ? engine_ : library_, of_engine, git));
    const MapAnswer answer = AskMap(map, asked, of_engine);
    Print(json_ ? ToText(ToJson(answer)) : ToText(answer));
    return answer.stretches.empty() ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  std::string engine_;
  std::string library_;
  std::string folder_ = "maps/verl-torchtitan";
  std::string git_mirror_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeWhichCommand() { return std::make_unique<WhichCommand>(); }

}  // namespace bkm
