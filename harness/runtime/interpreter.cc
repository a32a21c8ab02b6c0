// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/interpreter.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/base/supported_python.h"

namespace bkm {
namespace {

constexpr char kFacts[] =
#include "harness/runtime/environment_facts_py.inc"
    ;

constexpr char kRefuse[] = R"py(
if refusal():
    import json
    print(json.dumps({"refusal": refusal()}))
    sys.exit()
)py";

absl::StatusOr<Json> Ask(const std::filesystem::path& python, const std::string& question,
                         std::string input = "") {
  absl::StatusOr<std::string> output =
      RunForOutput({.argv = {python.string(), "-I", "-S", "-B", "-c",
                             absl::StrCat(kRefusalProgram, kRefuse, kFacts), question},
                    .input = std::move(input),
                    .may_run_again = true});
  if (!output.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the Python interpreter ", python.string(), " does not run: ",
        absl::IsNotFound(output.status()) ? "no such program" : "it fails on a short program"));
  }
  ASSIGN_OR_RETURN(Json json, ParseJson(*output, python.string()));
  if (json.contains("refusal")) {
    return absl::FailedPreconditionError(
        absl::StrCat(python.string(), " ", json["refusal"].get<std::string>()));
  }
  if (!json.contains("error")) return json;
  return absl::FailedPreconditionError(
      absl::StrCat(python.string(), ": ", json["error"].get<std::string>()));
}

}  // namespace

absl::StatusOr<InterpreterFacts> ReadInterpreter(const std::filesystem::path& python) {
  ASSIGN_OR_RETURN(const Json json, Ask(python, "versions"));
  return InterpreterFacts{json["python"], json["executable"].get<std::string>(),
                          json["packages"].get<std::map<std::string, std::string>>()};
}

absl::StatusOr<std::vector<DistributionFacts>> ReadDistributions(
    const std::filesystem::path& python) {
  ASSIGN_OR_RETURN(const Json json, Ask(python, "metadata"));
  std::vector<DistributionFacts> found;
  for (const Json& item : json["distributions"]) found.push_back({item[0], item[1], item[2]});
  return found;
}

std::string MinorVersion(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

absl::StatusOr<std::vector<InstalledPackage>> ReadInstalled(
    const std::filesystem::path& python, const std::vector<std::string>& packages) {
  ASSIGN_OR_RETURN(const Json json, Ask(python, "installed", absl::StrJoin(packages, "\n")));
  std::vector<InstalledPackage> found;
  for (const Json& item : json["installed"]) {
    found.push_back(
        {item["package"], item["version"], item["commit"], item["folder"].get<std::string>()});
  }
  return found;
}

}  // namespace bkm
