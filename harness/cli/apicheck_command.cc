// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/apicheck/pair_results.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/history/api_session.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string VersionName(const CheckedVersion& version) {
  return VersionText(version.label, version.spec, version.date);
}

class ApicheckCommand : public CliCommand {
 public:
  const char* name() const override { return "apicheck"; }
  const char* summary() const override {
    return "Check an engine's sources against a library's sources; runs neither";
  }
  const char* examples() const override {
    return "Finds missing modules and names, arguments that do not fit, and attributes that "
           "__slots__ rule out. Grades \"import\" and \"construct\" are certain failures in "
           "every configuration. Grade \"possible\" concerns code that may never run. Calls "
           "that cannot be decided are not reported.\n"
           "Exit 0: no pair certainly fails, which does not prove that the pairs work. Exit 1: "
           "a pair certainly fails.\n"
           "Examples:\n"
           "  bkm apicheck --engine git:verl@v0.8.0 --library git:torchtitan@main\n"
           "  bkm apicheck --engine git:verl@v0.7.1..main --library "
           "git:torchtitan@v0.2.2,pypi:torchtitan==0.3.0 --json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--engine", engines_,
                   "[KIND@]SPEC: git:verl@v0.8.0, git:verl@A..B, pypi:verl==0.9.1, "
                   "verl-torchtitan@path:../my-verl")
        ->delimiter(',')
        ->required();
    app.add_option("--library", libraries_,
                   "SPEC: git:torchtitan@main, git:torchtitan@A..B, pypi:torchtitan==0.3.0, "
                   "path:../my-torchtitan")
        ->delimiter(',')
        ->required();
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_flag("--all", all_, "Also print failures that are only possible");
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const EngineKind* const kind, TakeKind(engines_));
    ApiSession session(GitMirrorFolder(git_mirror_), "");
    ASSIGN_OR_RETURN(Versions* const versions, session.versions());
    ASSIGN_OR_RETURN(const std::vector<CheckedVersion> engines, versions->Find(engines_));
    ASSIGN_OR_RETURN(const std::vector<CheckedVersion> libraries, versions->Find(libraries_));
    ConsoleObserver console(/*quiet=*/false);
    session.ReportScan(console);
    ASSIGN_OR_RETURN(ApiCheck* const check, session.CheckOf(*kind));
    ASSIGN_OR_RETURN(const std::vector<PairResult> pairs, CheckPairs(*check, engines, libraries));
    if (json_) {
      Print(ToText(ToJson(*kind, pairs)));
    } else {
      PrintText(pairs);
    }
    for (const PairResult& pair : pairs) {
      if (IsRed(pair.grade)) return kExitVerdictsDiffer;
    }
    return kExitAsExpected;
  }

 private:
  void PrintText(const std::vector<PairResult>& pairs) const {
    int red = 0;
    for (const PairResult& pair : pairs) {
      red += IsRed(pair.grade) ? 1 : 0;
      const std::string grade(Name(pair.grade));
      Printf("%s x %s: %s\n", VersionName(pair.engine), VersionName(pair.library), grade.c_str());
      int untold = 0;
      for (const Violation& violation : pair.violations) {
        if (violation.grade == Grade::kPossible && !all_) {
          ++untold;
          continue;
        }
        Printf("  %-9s %s\n", std::string(Name(violation.grade)).c_str(), ToText(violation));
      }
      if (untold > 0) Printf("  and %d possible failures (print them with --all)\n", untold);
    }
    Printf("%d of %d pairs certainly fail\n", red, static_cast<int>(pairs.size()));
  }

  std::vector<std::string> engines_;
  std::vector<std::string> libraries_;
  std::string git_mirror_;
  bool all_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeApicheckCommand() { return std::make_unique<ApicheckCommand>(); }

}  // namespace bkm
