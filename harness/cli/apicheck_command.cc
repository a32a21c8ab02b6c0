// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/apicheck/api_check.h"
#include "harness/apicheck/versions.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/model/engine_kind.h"
#include "harness/report/labels.h"
#include "harness/session/api_session.h"

namespace bkm {
namespace {

// One engine version against one library version.
struct Pair {
  const CheckedVersion& engine;
  const CheckedVersion& library;
  PairGrade grade;
  std::vector<Violation> violations;
};

std::string VersionName(const CheckedVersion& version) {
  return VersionText(version.label, version.spec, version.date);
}

class ApicheckCommand : public CliCommand {
 public:
  const char* name() const override { return "apicheck"; }
  const char* summary() const override {
    return "Check an engine's sources against a library's, running neither";
  }
  const char* examples() const override {
    return "Finds modules and names that are not there, keywords and arguments that do not fit, "
           "and "
           "slots that do not exist. import and construct: certain, whatever is configured; "
           "possible: only in code that may not be reached. What cannot be decided is not told.\n"
           "Exit 0: nothing certain was found, which does not prove that the pair works; 1: a pair "
           "is red.\n"
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
    app.add_flag("--all", all_, "Print what is only possible, too");
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const EngineKind* kind, TakeKind());
    ApiSession session(GitMirrorFolder(git_mirror_), "");
    ASSIGN_OR_RETURN(Versions* const found, session.versions());
    Versions& versions = *found;
    ASSIGN_OR_RETURN(const std::vector<CheckedVersion> engines, versions.Find(engines_));
    ASSIGN_OR_RETURN(const std::vector<CheckedVersion> libraries, versions.Find(libraries_));
    ConsoleObserver console(/*quiet=*/false);
    session.ReportScan(console);
    ASSIGN_OR_RETURN(ApiCheck* const check, session.CheckOf(*kind));
    ASSIGN_OR_RETURN(const std::vector<Pair> pairs, CheckAll(*check, engines, libraries));
    json_ ? PrintJson(*kind, pairs) : PrintText(pairs);
    for (const Pair& pair : pairs) {
      if (IsRed(pair.grade)) return kExitVerdictsDiffer;
    }
    return kExitAsExpected;
  }

 private:
  // The kind that the engines are of; takes KIND@ off them.
  absl::StatusOr<const EngineKind*> TakeKind() {
    const EngineKind* kind = nullptr;
    for (std::string& engine : engines_) {
      const size_t at = engine.find('@');
      const size_t colon = engine.find(':');
      const EngineKind* named = nullptr;
      if (at != engine.npos && at < colon) {
        const std::string name = engine.substr(0, at);
        named = FindEngineKind(name);
        if (!named) {
          return absl::InvalidArgumentError(absl::StrCat("--engine: unknown kind '", name, "'",
                                                         DidYouMean(name, EngineKindNames())));
        }
        engine.erase(0, at + 1);
      }
      ASSIGN_OR_RETURN(const SubjectSpec spec, ParseSubjectSpec(engine));
      for (const EngineKind& each : EngineKinds()) {
        const bool fits = spec.source == SourceKind::kPath || each.engine_source == spec.name;
        if (!named && fits && !each.entry_modules.empty()) named = &each;
      }
      if (!named || named->entry_modules.empty() || (kind && kind != named)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--engine ", engine, ": no static check is known for it",
                         kind && named ? " together with the others"
                                       : " (only engines whose library is a "
                                         "source tree can be checked)"));
      }
      kind = named;
    }
    return kind;
  }

  static absl::StatusOr<std::vector<Pair>> CheckAll(ApiCheck& check,
                                                    const std::vector<CheckedVersion>& engines,
                                                    const std::vector<CheckedVersion>& libraries) {
    std::vector<Tree> rows;
    std::vector<Tree> columns;
    for (const CheckedVersion& engine : engines) rows.push_back(engine.tree);
    for (const CheckedVersion& library : libraries) columns.push_back(library.tree);
    ASSIGN_OR_RETURN(const auto plane, check.Plane(rows, columns));
    std::vector<Pair> pairs;
    for (size_t i = 0; i < engines.size(); ++i) {
      for (size_t j = 0; j < libraries.size(); ++j) {
        Pair pair{engines[i], libraries[j], plane[i][j], {}};
        if (pair.grade > PairGrade::kNothing) {
          ASSIGN_OR_RETURN(pair.violations, check.Check(rows[i], columns[j]));
        }
        pairs.push_back(std::move(pair));
      }
    }
    return pairs;
  }

  static void PrintJson(const EngineKind& kind, const std::vector<Pair>& pairs) {
    Json list = Json::array();
    for (const Pair& pair : pairs) {
      Json violations = Json::array();
      for (const Violation& violation : pair.violations) violations.push_back(ToJson(violation));
      list.push_back({{"engine_subject", pair.engine.spec.ToString()},
                      {"engine_label", pair.engine.label},
                      {"library_subject", pair.library.spec.ToString()},
                      {"library_label", pair.library.label},
                      {"grade", std::string(Name(pair.grade))},
                      {"violations", violations}});
    }
    const Json json = {{"schema", 1}, {"engine", kind.name}, {"pairs", list}};
    std::fputs(ToText(json).c_str(), stdout);
  }

  void PrintText(const std::vector<Pair>& pairs) const {
    int red = 0;
    for (const Pair& pair : pairs) {
      red += IsRed(pair.grade) ? 1 : 0;
      const std::string grade(Name(pair.grade));
      std::printf("%s x %s: %s\n", Printable(VersionName(pair.engine)).c_str(),
                  Printable(VersionName(pair.library)).c_str(), grade.c_str());
      int untold = 0;
      for (const Violation& violation : pair.violations) {
        if (violation.grade == Grade::kPossible && !all_) {
          ++untold;
          continue;
        }
        std::printf("  %-9s %s\n", std::string(Name(violation.grade)).c_str(),
                    Printable(ToText(violation)).c_str());
      }
      if (untold > 0) std::printf("  and %d that are only possible (--all)\n", untold);
    }
    std::printf("%d of %d pairs are red\n", red, static_cast<int>(pairs.size()));
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
