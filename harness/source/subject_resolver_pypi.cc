// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The part of SubjectResolver that asks the registry for releases and their files.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_resolver.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> LookUp(const fs::path& python) {
  return {"pip",         "compile",     "--python", python.string(), "--no-deps", "--format",
          "pylock.toml", "--no-header", "-"};
}

}  // namespace

absl::StatusOr<SubjectResolver::Release> SubjectResolver::FindRelease(
    const SubjectSpec& spec) const {
  // A published release never changes, so one answer is valid for ever.
  const std::string name = NormalizedName(spec.name);
  const fs::path cached =
      options_.cache / "registry" / absl::StrCat(name, "==", spec.revision, ".json");
  if (absl::StatusOr<Json> json = ReadKeptJson(cached, options_.report); json.ok()) {
    ObjectReader reader(*json, cached.string());
    Release release{reader.String("name"), reader.String("version"), reader.String("date"),
                    reader.Strings("sha256")};
    if (reader.Finish().ok()) return release;
  }
  ASSIGN_OR_RETURN(
      const ProcessResult result,
      uv_.LookUp(LookUp(options_.python), absl::StrCat(name, "==", spec.revision, "\n")));
  if (IsNoSolution(result)) return NoSuchRelease(spec, UvComplaint(result));
  if (!result.ok()) return ErrorOf(result, absl::StrCat("cannot look up ", spec.ToString()));
  ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(result.out));
  if (packages.size() != 1 || packages[0].sha256.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(spec.ToString(),
                     ": the registry gives no SHA-256 for its files; use a registry that does"));
  }
  const Release release{packages[0].name, packages[0].version, packages[0].uploaded,
                        packages[0].sha256};
  RETURN_IF_ERROR(WriteKeptFile(cached, ToText(Json{{"name", release.name},
                                                    {"version", release.version},
                                                    {"date", release.date},
                                                    {"sha256", release.sha256}})));
  return release;
}

absl::Status SubjectResolver::NoSuchRelease(const SubjectSpec& spec,
                                            const std::string& complaint) const {
  if (absl::StrContains(complaint, "was not found in the package registry")) {
    return absl::NotFoundError(absl::StrCat(spec.ToString(), ": the registry has no package '",
                                            spec.name, "'",
                                            DidYouMean(spec.name, catalog_.names())));
  }
  if (!absl::StrContains(complaint, "there is no version of")) {
    return absl::NotFoundError(absl::StrCat(spec.ToString(), ": ", complaint));
  }
  std::vector<std::string> near;
  const auto ask = [&](absl::string_view relation, absl::string_view strategy) -> absl::Status {
    std::vector<std::string> arguments = LookUp(options_.python);
    arguments.insert(arguments.end(), {"--resolution", std::string(strategy)});
    ASSIGN_OR_RETURN(const ProcessResult result,
                     uv_.LookUp(arguments, absl::StrCat(spec.name, relation, spec.revision, "\n")));
    if (!result.ok()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<PinnedPackage> found, reader_.ReadPylock(result.out));
    for (const PinnedPackage& package : found) near.push_back(package.version);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ask("<", "highest"));
  RETURN_IF_ERROR(ask(">", "lowest"));
  return absl::NotFoundError(absl::StrCat(
      spec.ToString(), ": the registry has no such version",
      near.empty() ? "" : absl::StrCat(" (nearest: ", absl::StrJoin(near, " and "), ")")));
}

absl::Status SubjectResolver::Install(const Release& release, const fs::path& folder) const {
  std::string pin = absl::StrCat(release.name, "==", release.version);
  for (const std::string& sha256 : release.sha256) absl::StrAppend(&pin, " --hash=sha256:", sha256);
  // Copies, not links: a change of this tree must not change uv's own cache.
  ASSIGN_OR_RETURN(const ProcessResult result, InstallAnew(folder, [&] {
                     return builds_.Install(
                         {"pip", "install", "--python", options_.python.string(), "--no-deps",
                          "--require-hashes", "--link-mode", "copy", "--target", folder.string()},
                         {pin}, /*cutoff=*/{});
                   }));
  return InstallationStatus(result,
                            absl::StrCat("cannot install ", release.name, " ", release.version));
}

}  // namespace bkm
