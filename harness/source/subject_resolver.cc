// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/subject_resolver.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/source/requirement_policy.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_digest.h"
#include "harness/source/tree_rules.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// The content of subject.json, which lies beside `tree/` in a cached tree's folder.
struct TreeFacts {
  std::string root;     // of the import path, relative to tree/: "" or "src"
  std::string package;  // import name
  std::string content;
  std::vector<std::string> requirements;
};

absl::Status WriteFacts(const TreeFacts& facts, const fs::path& folder) {
  return WriteScratchFile(folder / "subject.json",
                          ToText(Json{{"root", facts.root},
                                      {"package", facts.package},
                                      {"content", facts.content},
                                      {"requirements", facts.requirements}}));
}

absl::StatusOr<TreeFacts> ReadFacts(const fs::path& folder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(folder / "subject.json"));
  ObjectReader reader(json, (folder / "subject.json").string());
  TreeFacts facts{.root = reader.String("root"),
                  .package = reader.String("package"),
                  .content = reader.String("content"),
                  .requirements = reader.Strings("requirements")};
  RETURN_IF_ERROR(reader.Finish());
  return facts;
}

void Apply(const TreeFacts& facts, const fs::path& folder, Subject& subject) {
  subject.tree = facts.root.empty() ? folder / "tree" : folder / "tree" / facts.root;
  subject.package = facts.package;
  subject.content = facts.content;
  subject.requirements = facts.requirements;
}

// An unpacked package obeys the same bounds as the tree of a commit, and no link leads out of it.
absl::Status CheckInstalled(const fs::path& tree) {
  std::vector<FoundFile> files;
  RETURN_IF_ERROR(FindFiles(tree, TreeBounds(), files));
  for (const FoundFile& file : files) {
    if (!file.is_link) continue;
    std::error_code error;
    const std::string target = fs::read_symlink(tree / file.path, error).string();
    if (error || LeavesTree(file.path, target)) {
      return TreeNotAllowed(
          absl::StrCat("the package has a symbolic link out of its folder: ", file.path));
    }
  }
  return absl::OkStatus();
}

// Keeps a listing beside the tree in `folder`: a line with id and path for each file.
absl::Status WriteListing(const TreeListing& listing, const fs::path& folder) {
  std::string text;
  for (const auto& [path, id] : listing.files())
    absl::StrAppend(&text, id, " ", absl::CEscape(path), "\n");
  return WriteScratchFile(folder / "files.txt", text);
}

absl::StatusOr<TreeListing> ReadListing(const fs::path& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  std::vector<TreeListing::File> files;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const size_t space = line.find(' ');
    std::string path;
    if (space == line.npos || !absl::CUnescape(line.substr(space + 1), &path))
      return absl::DataLossError("no listing");
    files.emplace_back(std::move(path), std::string(line.substr(0, space)));
  }
  return TreeListing(std::move(files));
}

// Removes the compiled Python that a release ships, so that all compiled files are our own and say
// what their sources say.
void RemoveCompiled(const fs::path& tree) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::recursive_directory_iterator it(tree, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().filename() != "__pycache__" || !it->is_directory(error)) continue;
    folders.push_back(it->path());
    it.disable_recursion_pending();
  }
  for (const fs::path& folder : folders) fs::remove_all(folder, error);
}

// The id in a listing of a file with this blob id and git's mode.
std::string IdOf(const std::string& blob, absl::string_view mode) {
  if (mode == "100755") return blob + TreeListing::kExecutable;
  return mode == "120000" ? blob + TreeListing::kLink : blob;
}

// The listing that older versions kept beside the tree of a commit, which lacks the kinds of files.
absl::StatusOr<TreeListing> ReadOldListing(const fs::path& folder, const fs::path& tree) {
  ASSIGN_OR_RETURN(const TreeListing old, ReadListing(folder / "listing.txt"));
  std::vector<TreeListing::File> files = old.files();
  for (auto& [path, id] : files) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(tree / path, error);
    const bool executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    id = IdOf(id, fs::is_symlink(status) ? "120000" : executable ? "100755" : "100644");
  }
  return TreeListing(std::move(files));
}

// How the cells of a subject end whose content gave this error; nullopt for an error that is not
// the content's fault.
std::optional<EndingKind> EndingOf(const absl::Status& status) {
  if (const std::optional<EndingKind> fault = FaultOf(status)) return fault;
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return EndingKind::kRequirementNotAllowed;
    case absl::StatusCode::kInvalidArgument:
      return EndingKind::kRequirementMalformed;
    case absl::StatusCode::kAborted:
      return EndingKind::kInstallFailed;
    default:
      return std::nullopt;
  }
}

// Names the subject in an error of making its tree. A fault is told with the cell's subject.
absl::Status Named(const absl::Status& status, const SubjectSpec& spec) {
  return EndingOf(status) ? status : WithContext(status, spec.ToString());
}

// What is wrong with a tree is not wrong with its requirements.
absl::Status AsTreeFault(const absl::Status& status) {
  if (FaultOf(status)) return status;
  return absl::IsInvalidArgument(status) ? absl::AbortedError(status.message()) : status;
}

}  // namespace

SubjectResolver::SubjectResolver(const SourceCatalog& catalog, Uv uv, Options options)
    : catalog_(catalog),
      uv_(std::move(uv)),
      options_(std::move(options)),
      reader_(options_.python),
      builds_(uv_, options_.cache, options_.python),
      git_(catalog, options_.mirrors, options_.cache / "git"),
      trees_(options_.cache / "trees", options_.report),
      views_(options_.cache / "blobs", reader_, options_.report) {}

absl::StatusOr<Subject> SubjectResolver::Resolve(const SubjectSpec& spec) {
  Subject subject{.label = spec.revision};
  absl::Status status = ResolveInto(spec, subject);
  // Also for what an earlier version of this program put into the cache.
  if (status.ok()) status = CheckRequirements(subject.requirements);
  if (status.ok()) return subject;
  const std::optional<EndingKind> ending = EndingOf(status);
  if (!ending) return status;
  subject.tree.clear();
  subject.requirements.clear();
  subject.fault = SubjectFault{*ending, std::string(status.message())};
  return subject;
}

absl::Status SubjectResolver::ResolveInto(const SubjectSpec& spec, Subject& subject) {
  switch (spec.source) {
    case SourceKind::kGit:
      return ResolveGit(spec, subject);
    case SourceKind::kPypi:
      return ResolvePypi(spec, subject);
    case SourceKind::kPath:
      return ResolvePath(spec, subject);
  }
  return absl::InternalError("unknown kind of source");
}

absl::StatusOr<GitObjects*> SubjectResolver::ObjectsOf(const GitRepository& repository) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<GitObjects>& objects = objects_[repository.folder()];
  if (!objects) {
    ASSIGN_OR_RETURN(objects, GitObjects::Open(repository));
  }
  return objects.get();
}

absl::StatusOr<std::vector<std::string>> SubjectResolver::RequirementsOf(
    const fs::path& tree, const std::vector<GitEntry>& declarations) {
  std::string ids;
  for (const GitEntry& entry : declarations) absl::StrAppend(&ids, entry.path, " ", entry.id, "\n");
  const fs::path known = options_.cache / "requirements" / (Sha256(ids) + ".json");
  if (const absl::StatusOr<Json> json = ReadKeptJson(known, options_.report);
      json.ok() && json->is_array())
    return json->get<std::vector<std::string>>();
  ASSIGN_OR_RETURN(const PackageMetadata metadata, reader_.ReadDeclared(tree));
  RETURN_IF_ERROR(WriteKeptFile(known, ToText(Json(metadata.requirements))));
  return metadata.requirements;
}

absl::Status SubjectResolver::MakeGitTree(const GitSources::Found& found, const Source& source,
                                          const fs::path& folder) {
  ASSIGN_OR_RETURN(GitObjects* const objects, ObjectsOf(found.repository));
  TreeFacts facts{.package = source.package};
  std::string package;
  ASSIGN_OR_RETURN(const std::string top, objects->TreeOf(found.commit));
  for (const char* root : {"", "src/"}) {
    package = root + source.package;
    ASSIGN_OR_RETURN(const std::optional<GitEntry> tree, objects->Find(top, package));
    if (!tree || tree->mode != "40000") continue;
    facts.root = root[0] ? "src" : "";
    facts.content = absl::StrCat("git-tree:", tree->id);
    break;
  }
  if (facts.content.empty()) {
    return FaultySubject(
        EndingKind::kSourceIncomplete,
        absl::NotFoundError(absl::StrCat("commit ", found.commit, " has no folder ", source.package,
                                         " or src/", source.package)));
  }
  absl::StatusOr<std::vector<GitEntry>> walked =
      objects->Walk(facts.content.substr(strlen("git-tree:")));
  if (!walked.ok()) return AsTreeFault(walked.status());
  std::vector<GitEntry> entries = *std::move(walked);
  for (GitEntry& entry : entries) entry.path = absl::StrCat(package, "/", entry.path);
  ASSIGN_OR_RETURN(std::vector<GitEntry> declarations, objects->Entries(top));
  std::erase_if(declarations, [](const GitEntry& entry) {
    return !absl::StartsWith(entry.mode, "100") || !DeclaresRequirements(entry.path);
  });
  entries.insert(entries.end(), declarations.begin(), declarations.end());

  const fs::path tree = folder / "tree";
  RETURN_IF_ERROR(CreateDirectories(tree));
  absl::StatusOr<std::vector<GitEntry>> made =
      views_.Make(found.repository, *objects, found.commit, entries, package, tree);
  if (!made.ok()) return AsTreeFault(made.status());
  entries = *std::move(made);
  ASSIGN_OR_RETURN(facts.requirements, RequirementsOf(tree, declarations));
  std::vector<TreeListing::File> files;
  const std::string prefix = facts.root.empty() ? "" : facts.root + "/";
  for (const GitEntry& entry : entries) {
    if (absl::StartsWith(entry.path, prefix))
      files.emplace_back(entry.path.substr(prefix.size()), IdOf(entry.id, entry.mode));
  }
  RETURN_IF_ERROR(WriteListing(TreeListing(std::move(files)), folder));
  return WriteFacts(facts, folder);
}

absl::Status SubjectResolver::ResolveGit(const SubjectSpec& spec, Subject& subject) {
  ASSIGN_OR_RETURN(const GitSources::Found found, git_.Find(spec.name, spec.revision));
  const Source& source = *catalog_.Find(spec.name);
  ASSIGN_OR_RETURN(const Commit commit, found.repository.Describe(found.commit));
  subject.spec = {SourceKind::kGit, source.name, found.commit};
  subject.date = commit.date;
  subject.title = commit.title;
  subject.package = source.package;
  const absl::StatusOr<fs::path> folder =
      trees_.GetOrMake(absl::StrCat(source.name, "-", found.commit),
                       [&](const fs::path& made) { return MakeGitTree(found, source, made); });
  if (!folder.ok()) return Named(folder.status(), spec);
  ASSIGN_OR_RETURN(const TreeFacts facts, ReadFacts(*folder));
  Apply(facts, *folder, subject);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TreeListing>> SubjectResolver::Listing(
    const Subject& subject) {
  if (subject.spec.source == SourceKind::kPath || subject.tree.empty())
    return std::shared_ptr<const TreeListing>();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const TreeListing>& listing = listings_[subject.tree];
  if (listing) return listing;
  const fs::path folder = subject.tree.filename() == "tree"
                              ? subject.tree.parent_path()
                              : subject.tree.parent_path().parent_path();
  absl::StatusOr<TreeListing> read = ReadListing(folder / "files.txt");
  if (!read.ok()) {
    if (subject.spec.source == SourceKind::kGit) read = ReadOldListing(folder, subject.tree);
    if (!read.ok()) read = TreeListing::OfFolder(subject.tree);
    RETURN_IF_ERROR(read.status());
    RETURN_IF_ERROR(WriteListing(*read, folder));
  }
  listing = std::make_shared<const TreeListing>(*std::move(read));
  return listing;
}

absl::Status SubjectResolver::ResolvePypi(const SubjectSpec& spec, Subject& subject) {
  ASSIGN_OR_RETURN(const Release release, FindRelease(spec));
  subject.spec = {SourceKind::kPypi, release.name, release.version};
  subject.date = release.date;
  const Source* source = catalog_.Find(spec.name);
  const std::string digest = Sha256(absl::StrJoin(release.sha256, " "));
  subject.content = absl::StrCat("pypi:", digest);
  if (source) subject.package = source->package;
  if (source && source->in_runtime) {
    subject.requirements = {absl::StrCat(release.name, "==", release.version)};
    return absl::OkStatus();
  }
  const auto make = [&](const fs::path& folder) -> absl::Status {
    const fs::path tree = folder / "tree";
    RETURN_IF_ERROR(Install(release, tree));
    RETURN_IF_ERROR(CheckInstalled(tree));
    TreeFacts facts{.content = subject.content};
    ASSIGN_OR_RETURN(facts.package, PackageIn(tree, release.name));
    for (const fs::directory_entry& entry : fs::directory_iterator(tree)) {
      if (entry.path().extension() != ".dist-info") continue;
      ASSIGN_OR_RETURN(const PackageMetadata metadata,
                       reader_.ReadInstalled(entry.path() / "METADATA"));
      facts.requirements = metadata.requirements;
    }
    RemoveCompiled(tree);
    RETURN_IF_ERROR(reader_.CompileBytecode(tree / facts.package));
    return WriteFacts(facts, folder);
  };
  const absl::StatusOr<fs::path> folder = trees_.GetOrMake(
      absl::StrCat(release.name, "-", release.version, "-", digest.substr(0, 12)), make);
  if (!folder.ok()) return Named(folder.status(), spec);
  ASSIGN_OR_RETURN(const TreeFacts facts, ReadFacts(*folder));
  Apply(facts, *folder, subject);
  return absl::OkStatus();
}

absl::Status SubjectResolver::ResolvePath(const SubjectSpec& spec, Subject& subject) {
  std::error_code error;
  const fs::path folder = fs::canonical(options_.folder / spec.revision, error);
  if (error || !fs::is_directory(folder)) {
    const fs::path looked_for = fs::absolute(options_.folder / spec.revision).lexically_normal();
    return absl::NotFoundError(
        absl::StrCat(spec.ToString(), ": no such folder",
                     looked_for == spec.revision ? "" : absl::StrCat(" as ", looked_for.string())));
  }
  const std::string own_name = folder.filename().string();
  subject.spec = {SourceKind::kPath, IsPackageName(own_name) ? own_name : "path", folder.string()};
  ASSIGN_OR_RETURN(const PackageMetadata metadata, reader_.ReadDeclared(folder));
  subject.tree = folder;
  absl::StatusOr<std::string> package = PackageIn(folder, metadata.name);
  if (!package.ok() && fs::is_directory(folder / "src", error)) {
    subject.tree = folder / "src";
    package = PackageIn(subject.tree, metadata.name);
  }
  RETURN_IF_ERROR(package.status());
  subject.package = *package;
  subject.spec.name = metadata.name.empty() ? *package : metadata.name;
  subject.requirements = metadata.requirements;
  ASSIGN_OR_RETURN(const std::string digest, TreeDigest(subject.tree / subject.package));
  subject.content = absl::StrCat("tree:", digest);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SubjectResolver::PackageIn(const fs::path& tree,
                                                       const std::string& name) const {
  std::error_code error;
  const fs::path root = fs::canonical(tree, error);
  // A folder, or a link to a folder of the same tree: nothing outside is read.
  const auto is_folder = [&](const fs::path& folder) {
    if (!fs::is_directory(folder, error)) return false;
    const fs::path real = fs::canonical(folder, error);
    return !error &&
           std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  };
  std::vector<std::string> candidates;
  if (const Source* source = catalog_.Find(name)) candidates.push_back(source->package);
  std::string guess = NormalizedName(name);
  std::replace(guess.begin(), guess.end(), '-', '_');
  if (!guess.empty()) candidates.push_back(guess);
  for (const std::string& candidate : candidates) {
    if (is_folder(tree / candidate)) return candidate;
  }
  std::vector<std::string> packages;
  for (const fs::directory_entry& entry : fs::directory_iterator(tree, error)) {
    if (is_folder(entry.path()) && fs::exists(entry.path() / "__init__.py", error))
      packages.push_back(entry.path().filename());
  }
  std::erase(packages, "tests");
  if (packages.size() == 1) return packages[0];
  std::sort(packages.begin(), packages.end());
  return absl::AbortedError(absl::StrCat(
      tree.string(), " holds ", packages.empty() ? "no" : "more than one", " Python package",
      packages.empty() ? "" : absl::StrCat(" (", absl::StrJoin(packages, ", "), ")"),
      ", and no pyproject.toml or setup.py names one"));
}

}  // namespace bkm
