// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/package_metadata.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

constexpr char kProgram[] =
#include "harness/source/package_metadata_py.inc"
    ;

// Runs the Python program; its "error" becomes InvalidArgument.
absl::StatusOr<Json> Ask(const std::filesystem::path& python, std::vector<std::string> arguments,
                         const std::string& input = "") {
  Command command;
  command.argv = {python.string(), "-I", "-c", kProgram};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.input = input;
  ASSIGN_OR_RETURN(const ProcessResult result, RunCommand(command));
  if (!result.ok()) {
    const size_t last = result.err.rfind('\n', result.err.empty() ? 0 : result.err.size() - 2);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read package metadata with ", python.string(),
                     " (Python 3.11 or later is needed): ",
                     result.err.substr(last == std::string::npos ? 0 : last + 1)));
  }
  ASSIGN_OR_RETURN(Json json, ParseJson(result.out, "package_metadata.py"));
  if (json.contains("error")) {
    return absl::InvalidArgumentError(json["error"].get<std::string>());
  }
  return json;
}

absl::StatusOr<PackageMetadata> MetadataFrom(const absl::StatusOr<Json>& json,
                                             const std::filesystem::path& where) {
  if (!json.ok()) {
    return WithContext(json.status(),
                       absl::StrCat("cannot read the requirements of ", where.string()));
  }
  PackageMetadata metadata;
  if ((*json)["name"].is_string()) metadata.name = (*json)["name"].get<std::string>();
  for (const Json& requirement : (*json)["requirements"]) {
    if (!requirement.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("a requirement of ", where.string(),
                                                     " is not a string: ", ToLine(requirement)));
    }
    metadata.requirements.push_back(requirement.get<std::string>());
  }
  return metadata;
}

}  // namespace

bool DeclaresRequirements(absl::string_view name) {
  return name == "pyproject.toml" || name == "setup.py" || name == "setup.cfg" ||
         (absl::StartsWith(name, "requirements") && absl::EndsWith(name, ".txt"));
}

absl::StatusOr<PackageMetadata> PackageReader::ReadDeclared(
    const std::filesystem::path& folder) const {
  return MetadataFrom(Ask(python_, {"declared", folder.string()}), folder);
}

absl::StatusOr<PackageMetadata> PackageReader::ReadInstalled(
    const std::filesystem::path& metadata) const {
  return MetadataFrom(Ask(python_, {"metadata", metadata.string()}), metadata);
}

absl::StatusOr<std::vector<PinnedPackage>> PackageReader::ReadPylock(
    const std::string& text) const {
  ASSIGN_OR_RETURN(const Json json, Ask(python_, {"pylock"}, text));
  std::vector<PinnedPackage> packages;
  for (const Json& item : json["packages"]) {
    packages.push_back({item["name"], item["version"],
                        item["sha256"].get<std::vector<std::string>>(), item["uploaded"]});
    for (const Json& file : item["files"])
      packages.back().files.push_back({file["url"], file["sha256"], file["wheel"]});
  }
  return packages;
}

absl::Status PackageReader::CompileBytecode(const std::filesystem::path& folder) const {
  // Python must not check these files against their sources: nobody edits the trees, and copies do
  // not keep the modification times.
  Command command;
  command.argv = {
      python_.string(), "-I",           "-m", "compileall", "-q", "-j", "2", "--invalidation-mode",
      "unchecked-hash", folder.string()};
  return RunCommand(command).status();
}

absl::StatusOr<std::string> PackageReader::CompileFiles(
    const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& files) const {
  std::string pairs;
  for (const auto& [source, target] : files)
    absl::StrAppend(&pairs, source.string(), "\t", target.string(), "\n");
  ASSIGN_OR_RETURN(const Json json, Ask(python_, {"compile"}, pairs));
  return json["tag"].get<std::string>();
}

}  // namespace bkm
