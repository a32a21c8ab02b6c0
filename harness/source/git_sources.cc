// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_sources.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

// Whether a revision always names the same commit, as commit ids and tags do, but branches do not.
absl::StatusOr<bool> IsFixed(const GitRepository& repository, absl::string_view revision) {
  const absl::string_view base = revision.substr(0, revision.find_first_of("~^@"));
  if (base.size() >= 7 && IsHex(base)) return true;
  ASSIGN_OR_RETURN(const auto tag, repository.CommitId(absl::StrCat("refs/tags/", base)));
  return tag.has_value();
}

// The error of a failed transfer. `hint` is advice for every cause but a full disk.
absl::Status CannotReach(absl::string_view doing, const Source& source, const ProcessResult& result,
                         absl::string_view hint) {
  const std::string what = absl::StrCat("cannot ", doing, " ", source.name, " from ", source.git,
                                        ": ", GitComplaint(result));
  if (absl::StrContains(result.err, "No space left on device")) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " (free some space, or set BKM_CACHE)"));
  }
  return absl::UnavailableError(absl::StrCat(what, " (check the network, or ", hint, ")"));
}

absl::Status NoSuchRevision(const GitRepository& repository, absl::string_view name,
                            absl::string_view revision, absl::string_view hint) {
  std::string suggestion;
  if (!IsHex(revision.substr(0, revision.find_first_of("~^@")))) {
    ASSIGN_OR_RETURN(std::vector<std::string> tags, repository.Tags());
    if (tags.size() > 6) tags.resize(6);
    tags.push_back("main");
    suggestion = DidYouMean(revision, tags);
  }
  return absl::NotFoundError(absl::StrCat("git:", name, "@", revision, ": no such revision in ",
                                          repository.folder().string(), suggestion, hint));
}

}  // namespace

absl::StatusOr<GitRepository> GitSources::Open(absl::string_view name) {
  const Source* source = catalog_.Find(name);
  if (!source) {
    return absl::NotFoundError(absl::StrCat("unknown git source '", name, "'",
                                            DidYouMean(name, catalog_.names()),
                                            "; a matrix adds one under \"sources\""));
  }
  if (!mirrors_.empty()) {
    const fs::path mirror = mirrors_ / absl::StrCat(source->name, ".git");
    std::error_code error;
    if (fs::is_directory(mirror, error)) return GitRepository(mirror);
    if (!fs::is_directory(mirrors_, error)) {
      return absl::NotFoundError(absl::StrCat("the folder of git mirrors ", mirrors_.string(),
                                              " does not exist (--git-mirror, BKM_GIT_MIRRORS)"));
    }
  }
  if (source->git.empty()) {
    return absl::NotFoundError(absl::StrCat("git:", name,
                                            ": only known on PyPI; give its URL in "
                                            "the matrix's \"sources\", or a mirror"));
  }
  return OpenClone(*source);
}

absl::StatusOr<GitRepository> GitSources::OpenClone(const Source& source) {
  const std::string key = absl::StrCat(source.name, "-", Sha256(source.git).substr(0, 12));
  ASSIGN_OR_RETURN(
      const fs::path folder, clones_.GetOrMake(key, [&](const fs::path& made) -> absl::Status {
        ASSIGN_OR_RETURN(const ProcessResult result,
                         RunCommand(GitCommand({"clone", "--quiet", "--bare", "--filter=blob:none",
                                                source.git, made.string()})));
        if (result.ok()) return absl::OkStatus();
        return CannotReach("clone", source, result, "give a folder of mirrors with --git-mirror");
      }));
  return GitRepository(folder);
}

absl::Status GitSources::Fetch(const Source& source, const GitRepository& clone) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fetched_.contains(source.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ProcessResult result,
                   clone.Run({"fetch", "--quiet", "--force", "--prune", "--filter=blob:none",
                              "origin", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}));
  if (!result.ok()) {
    return CannotReach("fetch", source, result, "give a commit id or tag that was fetched before");
  }
  fetched_.insert(source.name);
  return absl::OkStatus();
}

absl::StatusOr<std::string> GitSources::FindInClone(const Source& source,
                                                    const GitRepository& clone,
                                                    const std::string& revision) {
  ASSIGN_OR_RETURN(std::optional<std::string> commit, clone.CommitId(revision));
  ASSIGN_OR_RETURN(const bool fixed, IsFixed(clone, revision));
  if (commit && fixed) return *commit;
  RETURN_IF_ERROR(Fetch(source, clone));
  ASSIGN_OR_RETURN(commit, clone.CommitId(revision));
  if (!commit && revision.size() == 40 && IsHex(revision)) {
    // A commit that is on no branch, such as one of a pull request: hosts serve it by its full id.
    ASSIGN_OR_RETURN(const ProcessResult result,
                     clone.Run({"fetch", "--quiet", "--filter=blob:none", "origin", revision}));
    if (result.ok()) return revision;
  }
  if (commit) return *commit;
  return NoSuchRevision(clone, source.name, revision,
                        absl::StrCat(" (fetched just now from ", source.git,
                                     "; a commit of a fork or pull request needs all 40 digits)"));
}

absl::StatusOr<GitSources::Found> GitSources::Find(absl::string_view name,
                                                   absl::string_view revision) {
  ASSIGN_OR_RETURN(GitRepository repository, Open(name));
  if (repository.folder().parent_path() == clones_.root()) {
    ASSIGN_OR_RETURN(std::string commit,
                     FindInClone(*catalog_.Find(name), repository, std::string(revision)));
    return Found{std::move(repository), std::move(commit)};
  }
  ASSIGN_OR_RETURN(std::optional<std::string> commit, repository.CommitId(revision));
  if (commit) return Found{std::move(repository), *std::move(commit)};
  return NoSuchRevision(repository, name, revision,
                        absl::StrCat(" (if it is new or older than a shallow mirror: git -C ",
                                     repository.folder().string(), " fetch ",
                                     catalog_.Find(name)->git, " REVISION)"));
}

}  // namespace bkm
