// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/package_metadata.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/source/isolated_python.h"
#include "harness/source/requirement_policy.h"

namespace bkm {
namespace {

constexpr char kProgram[] =
#include "harness/source/package_metadata_py.inc"
    ;

// Far more than a package takes: the program itself bounds its processor time.
constexpr std::chrono::seconds kLongestRead(120);
constexpr std::chrono::seconds kLongestCompilation(3600);

Command Isolated(const std::filesystem::path& python, const std::vector<std::string>& arguments) {
  Command command = IsolatedPython(python, kProgram, arguments);
  command.timeout = kLongestRead;
  return command;
}

// Runs the Python program. Its "error" becomes PermissionDenied (not-allowed), InvalidArgument
// (malformed) or Unavailable (the file could not be read). A file that makes the program exceed its
// limits is malformed: they end it by another signal than SIGKILL, and count processor time, so
// that a busy machine is not taken for a bad file.
absl::StatusOr<Json> Ask(const std::filesystem::path& python, const Command& command) {
  ASSIGN_OR_RETURN(const ProcessResult result, RunCommand(command));
  if (result.timed_out) {
    return absl::UnavailableError(absl::StrCat("reading package metadata took more than ",
                                               command.timeout->count(),
                                               " s: is this machine too busy?"));
  }
  if (result.exit_code > 128)
    return absl::InvalidArgumentError("reading it takes too much time or memory");
  if (!result.ok()) {
    const size_t last = result.err.rfind('\n', result.err.empty() ? 0 : result.err.size() - 2);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read package metadata with ", python.string(),
                     " (Python 3.11 or later is needed): ",
                     result.err.substr(last == std::string::npos ? 0 : last + 1)));
  }
  ASSIGN_OR_RETURN(Json json, ParseJson(result.out, "package_metadata.py"));
  if (!json.contains("error")) return json;
  const std::string origin = TextOf(json, "origin");
  const std::string error = absl::StrCat(origin, origin.empty() ? "" : ": ", TextOf(json, "error"));
  const std::string kind = TextOf(json, "kind");
  if (kind == "not-allowed") return absl::PermissionDeniedError(error);
  if (kind == "malformed") return absl::InvalidArgumentError(error);
  return absl::UnavailableError(error);
}

absl::StatusOr<Json> Ask(const std::filesystem::path& python,
                         const std::vector<std::string>& arguments, const std::string& input = "") {
  Command command = Isolated(python, arguments);
  command.input = input;
  return Ask(python, command);
}

absl::StatusOr<PackageMetadata> MetadataFrom(const absl::StatusOr<Json>& json,
                                             const std::filesystem::path& where) {
  // The fault of a package is told without the path of its folder, which differs between machines.
  if (absl::IsPermissionDenied(json.status()) || absl::IsInvalidArgument(json.status()))
    return json.status();
  if (!json.ok()) {
    return WithContext(json.status(),
                       absl::StrCat("cannot read the requirements of ", where.string()));
  }
  const std::string origin = TextOf(*json, "origin");
  PackageMetadata metadata;
  if ((*json)["name"].is_string()) metadata.name = (*json)["name"].get<std::string>();
  // A name becomes part of paths.
  if (!metadata.name.empty() && !IsPackageName(metadata.name))
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": the name is not the name of a package"));
  for (const Json& requirement : (*json)["requirements"])
    metadata.requirements.push_back(requirement.get<std::string>());
  if (absl::Status status = CheckRequirements(metadata.requirements); !status.ok())
    return WithContext(status, origin);
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

absl::StatusOr<std::vector<std::string>> PackageReader::ReadBuildRequirements(
    const std::filesystem::path& sdist) const {
  ASSIGN_OR_RETURN(const PackageMetadata metadata,
                   MetadataFrom(Ask(python_, {"sdist", sdist.string()}), sdist));
  return metadata.requirements;
}

absl::Status PackageReader::CompileBytecode(const std::filesystem::path& folder) const {
  Command command = Isolated(python_, {"compile-tree", folder.string()});
  command.timeout = kLongestCompilation;
  return Ask(python_, command).status();
}

absl::StatusOr<std::string> PackageReader::CompileFiles(
    const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& files) const {
  std::string pairs;
  for (const auto& [source, target] : files)
    absl::StrAppend(&pairs, source.string(), "\t", target.string(), "\n");
  Command command = Isolated(python_, {"compile"});
  command.input = pairs;
  command.timeout = kLongestCompilation;
  ASSIGN_OR_RETURN(const Json json, Ask(python_, command));
  return json["tag"].get<std::string>();
}

}  // namespace bkm
