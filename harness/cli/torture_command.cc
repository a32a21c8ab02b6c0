// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/selection.h"
#include "harness/matrix/matrix.h"
#include "harness/runner/installation.h"
#include "harness/source/uv.h"
#include "harness/torture/torture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class TortureCommand : public CliCommand {
 public:
  const char* name() const override { return "torture"; }
  const char* summary() const override {
    return "Kill, fill and cut off runs; verify that no result is lost, repeated or wrong";
  }
  const char* examples() const override {
    return "Runs small fake pairs, which need neither torch nor the network. With --matrix, runs a "
           "matrix of yours: then uv and the reference worker are killed, too, while they prepare "
           "its runtimes and references. Your cache and your runs are not touched; packages come "
           "from uv's cache.\n"
           "Examples:\n"
           "  bkm torture --minutes 10 --seed 7\n"
           "  bkm torture --minutes 60 --matrix small.json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--minutes", options_.minutes, "End after these minutes")
        ->check(CLI::Range(0.01, 10000.0))
        ->capture_default_str();
    app.add_option("--kills", options_.kills, "End after so many kills, if that is earlier")
        ->check(CLI::Range(1, 1000000));
    app.add_flag("--once-each", options_.once_each,
                 "End when each kind of disturbance took place, if that is earlier");
    app.add_option("--seed", options_.seed, "Seed of what is disturbed, and when")
        ->capture_default_str();
    app.add_option("--matrix", matrix_, "Run this matrix instead of fake pairs");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp)->needs("--matrix");
    app.add_option("--out", out_, "Folder to work in, which is kept (default: a temporary one)");
    app.add_flag("--json", json_, "Print JSON");
    app.add_flag("--quiet,-q", quiet_, "Print no progress");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(installation.CheckBuilt());
    std::error_code error;
    options_.bkm = fs::read_symlink("/proc/self/exe", error);
    options_.root = installation.root;
    options_.bin = installation.bin;
    if (!matrix_.empty()) RETURN_IF_ERROR(TakeMatrix());
    ASSIGN_OR_RETURN(options_.folder, Folder());
    if (!quiet_) {
      options_.progress = [](const std::string& line) { PrintErrorf("bkm: %s\n", line); };
    }
    const absl::StatusOr<TortureResult> result = Torture(options_);
    if (out_.empty()) RemoveTree(options_.folder).IgnoreError();
    RETURN_IF_ERROR(result.status());
    Print(json_ ? ToText(TortureJson(*result, options_.seed))
                : TortureText(*result, options_.seed));
    return result->sound() ? kExitAsExpected : kExitVerdictsDiffer;
  }

 private:
  absl::Status TakeMatrix() {
    RETURN_IF_ERROR(ReadMatrix(matrix_).status());
    options_.matrix = fs::absolute(matrix_);
    ASSIGN_OR_RETURN(const Uv uv, Uv::Find());
    options_.uv = uv.program();
    if (!git_mirror_.empty())
      options_.options = {"--git-mirror", fs::absolute(git_mirror_).string()};
    return absl::OkStatus();
  }

  absl::StatusOr<fs::path> Folder() const {
    if (out_.empty()) return CreateTempDirectory(fs::temp_directory_path(), "bkm-torture-");
    const fs::path folder = fs::absolute(out_);
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
      return absl::FailedPreconditionError(folder.string() +
                                           ": is not empty; name a new or an empty folder");
    }
    RETURN_IF_ERROR(CreateDirectories(folder));
    return folder;
  }

  TortureOptions options_;
  std::string matrix_;
  std::string git_mirror_;
  std::string out_;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeTortureCommand() { return std::make_unique<TortureCommand>(); }

}  // namespace bkm
