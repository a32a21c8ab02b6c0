// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/selection.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/installation.h"

namespace bkm {
namespace {

constexpr char kOrigin[] = "command line";
constexpr char kProductGroup[] = "Instead of a matrix file: every combination of these";

// Whether `spec` may be the library of `kind`: by name, or any folder.
bool IsLibraryOf(const EngineKind& kind, const std::string& spec) {
  const absl::StatusOr<SubjectSpec> parsed = ParseSubjectSpec(spec);
  // An invalid spec is kept: reading the matrix reports it.
  return !parsed.ok() || parsed->source == SourceKind::kPath || parsed->name == kind.library_source;
}

// `text` parsed as JSON; the text itself if it is not JSON.
Json ValueOf(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

// The parts of `text` between commas that lie in no list, object or string of JSON.
std::vector<std::string> SplitOutsideJson(absl::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool in_string = false, is_escaped = false;
  for (const char c : text) {
    if (in_string) {
      in_string = is_escaped || c != '"';
      is_escaped = !is_escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      parts.emplace_back();
      continue;
    }
    parts.back().push_back(c);
  }
  return parts;
}

// The value of `dimension` that its flag spells.
absl::StatusOr<Json> ValueOfFlag(const Dimension& dimension, const std::string& text) {
  if (dimension.value == nullptr) return Json(text);
  absl::StatusOr<Json> value = dimension.value(text);
  if (!value.ok()) return WithContext(value.status(), dimension.Flag());
  return value;
}

// Refuses words where the dimension has numbers.
CLI::Validator NumbersOf(const Dimension& dimension) {
  const bool has_numbers =
      dimension.value != nullptr && dimension.value(dimension.default_text).value().is_number();
  return CLI::Validator(
      [has_numbers](const std::string& text) {
        const bool is_number = Json::parse(text, nullptr, false).is_number();
        return has_numbers && !is_number ? absl::StrCat("'", text, "' is not a number") : "";
      },
      "");
}

}  // namespace

void Selection::AddOptions(CLI::App& app) {
  app.add_option("matrix", matrix_path_,
                 "Matrix file, or the name of one that came with bkm: quickstart");
  const auto list = [&](const char* flags, std::vector<std::string>& into, const char* help) {
    return app.add_option(flags, into, help)->delimiter(',')->group(kProductGroup);
  };
  list("--engine", engines_,
       "KIND@SPEC, or KIND alone for a control: verl-torchtitan@git:verl@v0.8.0, "
       "verl-fsdp@pypi:verl==0.9.1, torchtitan");
  list("--library", libraries_,
       "SPEC: pypi:torchtitan==0.3.0, git:torchtitan@baba6d82e, path:../my-torchtitan");
  for (const Dimension& dimension : Dimensions()) {
    const std::string flag = dimension.Flag();
    switch (dimension.flag_form) {
      case FlagForm::kNone:
        break;
      case FlagForm::kValues:
        list(flag.c_str(), values_[dimension.name], dimension.help)->check(NumbersOf(dimension));
        break;
      case FlagForm::kValue:
        app.add_option(flag, value_[dimension.name], dimension.help)
            ->check(NumbersOf(dimension))
            ->group(kProductGroup);
        break;
      case FlagForm::kSwitch:
        app.add_flag(flag, switches_[dimension.name], dimension.help)->group(kProductGroup);
        break;
    }
  }
  list("--relax", relax_, FindDimension("relax")->help);
  app.add_option("--engine-option", engine_options_,
                 "NAME=JSON: a value in the engine's configuration, for example "
                 "param_offload=true or 'target_modules=[\"q_proj\",\"v_proj\"]'; with --drive "
                 "trainer under the trainer's own name, for example data.train_batch_size=4")
      ->group(kProductGroup);
  app.add_option("--filter", filters_,
                 "Only cells that match every key=glob, for example engine=v0.8.0,attention=f*; "
                 "repeat the option to add alternatives");
  app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
  app.add_option("--timeout", timeout_s_, "Time limit of a cell, in seconds");
  app.add_option("--memory", memory_mib_, "Memory limit of a cell, in MiB");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == kProductGroup) of_own_cells_.push_back(option);
  }
}

std::filesystem::path Selection::MatrixPath() const {
  std::error_code error;
  if (std::filesystem::exists(matrix_path_, error) ||
      matrix_path_.find_first_of("/.") != std::string::npos)
    return matrix_path_;
  const absl::StatusOr<Installation> installation = Installation::Find();
  if (!installation.ok()) return matrix_path_;
  const std::filesystem::path ours = installation->matrices() / (matrix_path_ + ".json");
  return std::filesystem::exists(ours, error) ? ours : std::filesystem::path(matrix_path_);
}

std::filesystem::path Selection::MatrixFile() const {
  return matrix_path_.empty() ? std::filesystem::path() : std::filesystem::absolute(MatrixPath());
}

std::string GitMirrorFolder(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* mirrors = std::getenv("BKM_GIT_MIRRORS");
  return mirrors ? mirrors : "";
}

std::string Selection::GitMirrors() const { return GitMirrorFolder(git_mirror_); }

absl::StatusOr<Json> Selection::AdHocGroup(const std::string& engine) const {
  const std::vector<std::string> parts = absl::StrSplit(engine, absl::MaxSplits('@', 1));
  const EngineKind* kind = FindEngineKind(parts[0]);
  if (!kind)
    return absl::InvalidArgumentError(absl::StrCat("--engine: unknown kind '", parts[0], "'",
                                                   DidYouMean(parts[0], EngineKindNames())));
  Json group = {{"engine", {{"kind", kind->name}, {"subjects", Json::array()}}},
                {"probe", Json::object()}};
  if (parts.size() == 2) group["engine"]["subjects"].push_back(parts[1]);
  group["library"] = Json::array();
  for (const std::string& library : libraries_) {
    if (IsLibraryOf(*kind, library)) group["library"].push_back(library);
  }
  if (!relax_.empty()) group["relax"] = relax_;
  for (const Dimension& dimension : Dimensions()) {
    Json& asked = dimension.field ? group["probe"] : group;
    const char* key = dimension.field ? dimension.field : dimension.name;
    if (const auto all = values_.find(dimension.name); all != values_.end()) {
      for (const std::string& text : all->second) {
        ASSIGN_OR_RETURN(asked[key].emplace_back(), ValueOfFlag(dimension, text));
      }
    }
    if (const auto one = value_.find(dimension.name); one != value_.end() && !one->second.empty()) {
      ASSIGN_OR_RETURN(asked[key], ValueOfFlag(dimension, one->second));
    }
    if (const auto on = switches_.find(dimension.name); on != switches_.end() && on->second)
      asked[key] = true;
  }
  ASSIGN_OR_RETURN(group["probe"]["engine_options"], AdHocEngineOptions());
  return group;
}

absl::StatusOr<Json> Selection::AdHocEngineOptions() const {
  Json options = Json::object();
  for (const std::string& list : engine_options_) {
    for (const std::string& option : SplitOutsideJson(list)) {
      const std::vector<std::string> pair = absl::StrSplit(option, absl::MaxSplits('=', 1));
      if (pair.size() != 2)
        return absl::InvalidArgumentError(
            absl::StrCat("--engine-option: '", option, "' is not NAME=VALUE"));
      options[pair[0]] = ValueOf(pair[1]);
    }
  }
  return Json::array({options});
}

absl::StatusOr<Matrix> Selection::AdHoc() const {
  Json json = {{"schema", 1}, {"name", "ad-hoc"}, {"groups", Json::array()}};
  for (const std::string& engine : engines_) {
    ASSIGN_OR_RETURN(Json group, AdHocGroup(engine));
    json["groups"].push_back(std::move(group));
  }
  return MatrixFromJson(json, kOrigin);
}

absl::StatusOr<Matrix> Selection::LoadMatrix() const {
  if (matrix_path_.empty() == engines_.empty()) {
    return absl::InvalidArgumentError(
        "name a matrix file (bkm run matrices/quickstart.json) or select cells by options (bkm run "
        "--engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@baba6d82e --attention "
        "flex), not "
        "both");
  }
  const auto given = std::find_if(of_own_cells_.begin(), of_own_cells_.end(),
                                  [](const CLI::Option* option) { return option->count() > 0; });
  if (!matrix_path_.empty() && given != of_own_cells_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        (*given)->get_name(), " selects cells without a matrix file: leave it out, change ",
        matrix_path_, ", or take a part of it with --filter KEY=VALUE"));
  }
  ASSIGN_OR_RETURN(Matrix matrix, matrix_path_.empty() ? AdHoc() : ReadMatrix(MatrixPath()));
  if (timeout_s_ > 0) matrix.limits.timeout_s = timeout_s_;
  if (memory_mib_ > 0) matrix.limits.memory_mib = memory_mib_;
  return matrix;
}

absl::StatusOr<std::vector<CellFilter>> Selection::Filters() const {
  std::vector<CellFilter> filters;
  for (const std::string& text : filters_) {
    ASSIGN_OR_RETURN(CellFilter filter, CellFilter::Parse(text));
    filters.push_back(std::move(filter));
  }
  return filters;
}

}  // namespace bkm
