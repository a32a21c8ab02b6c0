// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/subject_resolver.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/source/tree_digest.h"

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
  return WriteFile(folder / "subject.json", ToText(Json{{"root", facts.root},
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

// Keeps a listing beside the tree in `folder`: a line with id and path for each file.
absl::Status WriteListing(const TreeListing& listing, const fs::path& folder) {
  std::string text;
  for (const auto& [path, id] : listing.files()) absl::StrAppend(&text, id, " ", path, "\n");
  return WriteFile(folder / "listing.txt", text);
}

absl::StatusOr<TreeListing> ReadListing(const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(folder / "listing.txt"));
  std::vector<TreeListing::File> files;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const size_t space = line.find(' ');
    if (space == line.npos) return absl::DataLossError("no listing");
    files.emplace_back(std::string(line.substr(space + 1)), std::string(line.substr(0, space)));
  }
  return TreeListing(std::move(files));
}

}  // namespace

SubjectResolver::SubjectResolver(const SourceCatalog& catalog, Uv uv, Options options)
    : catalog_(catalog),
      uv_(std::move(uv)),
      options_(std::move(options)),
      reader_(options_.python),
      git_(catalog, options_.mirrors, options_.cache / "git"),
      trees_(options_.cache / "trees"),
      views_(options_.cache / "blobs", reader_) {}

absl::StatusOr<Subject> SubjectResolver::Resolve(const SubjectSpec& spec) {
  switch (spec.source) {
    case SourceKind::kGit:
      return ResolveGit(spec);
    case SourceKind::kPypi:
      return ResolvePypi(spec);
    case SourceKind::kPath:
      return ResolvePath(spec);
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
  if (const absl::StatusOr<Json> json = ReadJsonFile(known); json.ok() && json->is_array())
    return json->get<std::vector<std::string>>();
  ASSIGN_OR_RETURN(const PackageMetadata metadata, reader_.ReadDeclared(tree));
  RETURN_IF_ERROR(WriteFile(known, ToText(Json(metadata.requirements))));
  return metadata.requirements;
}

absl::Status SubjectResolver::MakeGitTree(const GitSources::Found& found, const Source& source,
                                          const fs::path& folder) {
  ASSIGN_OR_RETURN(GitObjects* const objects, ObjectsOf(found.repository));
  TreeFacts facts{.package = source.package};
  std::string package;
  for (const char* root : {"", "src/"}) {
    package = root + source.package;
    ASSIGN_OR_RETURN(const auto tree, objects->Read(absl::StrCat(found.commit, ":", package)));
    if (!tree || tree->type != "tree") continue;
    facts.root = root[0] ? "src" : "";
    facts.content = absl::StrCat("git-tree:", tree->id);
    break;
  }
  if (facts.content.empty()) {
    return absl::NotFoundError(absl::StrCat("commit ", found.commit, " has no folder ",
                                            source.package, " or src/", source.package));
  }
  ASSIGN_OR_RETURN(std::vector<GitEntry> entries,
                   objects->Walk(facts.content.substr(strlen("git-tree:"))));
  for (GitEntry& entry : entries) entry.path = absl::StrCat(package, "/", entry.path);
  ASSIGN_OR_RETURN(const auto top, objects->Read(absl::StrCat(found.commit, "^{tree}")));
  std::vector<GitEntry> declarations;
  if (top) declarations = ParseTree(top->content, top->id.size() / 2);
  std::erase_if(declarations, [](const GitEntry& entry) {
    return !absl::StartsWith(entry.mode, "100") || !DeclaresRequirements(entry.path);
  });
  entries.insert(entries.end(), declarations.begin(), declarations.end());

  const fs::path tree = folder / "tree";
  RETURN_IF_ERROR(CreateDirectories(tree));
  ASSIGN_OR_RETURN(entries,
                   views_.Make(found.repository, *objects, found.commit, entries, package, tree));
  ASSIGN_OR_RETURN(facts.requirements, RequirementsOf(tree, declarations));
  std::vector<TreeListing::File> files;
  const std::string prefix = facts.root.empty() ? "" : facts.root + "/";
  for (const GitEntry& entry : entries) {
    if (absl::StartsWith(entry.path, prefix))
      files.emplace_back(entry.path.substr(prefix.size()), entry.id);
  }
  RETURN_IF_ERROR(WriteListing(TreeListing(std::move(files)), folder));
  return WriteFacts(facts, folder);
}

absl::StatusOr<Subject> SubjectResolver::ResolveGit(const SubjectSpec& spec) {
  ASSIGN_OR_RETURN(const GitSources::Found found, git_.Find(spec.name, spec.revision));
  const Source& source = *catalog_.Find(spec.name);
  ASSIGN_OR_RETURN(const Commit commit, found.repository.Describe(found.commit));
  Subject subject{.spec = {SourceKind::kGit, source.name, found.commit},
                  .label = spec.revision,
                  .date = commit.date,
                  .title = commit.title};
  const absl::StatusOr<fs::path> folder =
      trees_.GetOrMake(absl::StrCat(source.name, "-", found.commit),
                       [&](const fs::path& made) { return MakeGitTree(found, source, made); });
  if (!folder.ok()) return WithContext(folder.status(), spec.ToString());
  ASSIGN_OR_RETURN(const TreeFacts facts, ReadFacts(*folder));
  Apply(facts, *folder, subject);
  return subject;
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
  absl::StatusOr<TreeListing> read = ReadListing(folder);
  if (!read.ok()) {
    ASSIGN_OR_RETURN(read, TreeListing::OfFolder(subject.tree));
    RETURN_IF_ERROR(WriteListing(*read, folder));
  }
  listing = std::make_shared<const TreeListing>(*std::move(read));
  return listing;
}

absl::StatusOr<Subject> SubjectResolver::ResolvePypi(const SubjectSpec& spec) {
  ASSIGN_OR_RETURN(const Release release, FindRelease(spec));
  Subject subject{.spec = {SourceKind::kPypi, release.name, release.version},
                  .label = spec.revision,
                  .date = release.date};
  const Source* source = catalog_.Find(spec.name);
  const std::string digest = Sha256(absl::StrJoin(release.sha256, " "));
  if (source && source->in_runtime) {
    subject.package = source->package;
    subject.content = absl::StrCat("pypi:", digest);
    subject.requirements = {absl::StrCat(release.name, "==", release.version)};
    return subject;
  }
  const auto make = [&](const fs::path& folder) -> absl::Status {
    const fs::path tree = folder / "tree";
    RETURN_IF_ERROR(Install(release, tree));
    TreeFacts facts{.content = absl::StrCat("pypi:", digest)};
    ASSIGN_OR_RETURN(facts.package, PackageIn(tree, release.name));
    for (const fs::directory_entry& entry : fs::directory_iterator(tree)) {
      if (entry.path().extension() != ".dist-info") continue;
      ASSIGN_OR_RETURN(const PackageMetadata metadata,
                       reader_.ReadInstalled(entry.path() / "METADATA"));
      facts.requirements = metadata.requirements;
    }
    RETURN_IF_ERROR(reader_.CompileBytecode(tree / facts.package));
    return WriteFacts(facts, folder);
  };
  const absl::StatusOr<fs::path> folder = trees_.GetOrMake(
      absl::StrCat(release.name, "-", release.version, "-", digest.substr(0, 12)), make);
  if (!folder.ok()) return WithContext(folder.status(), spec.ToString());
  ASSIGN_OR_RETURN(const TreeFacts facts, ReadFacts(*folder));
  Apply(facts, *folder, subject);
  return subject;
}

absl::StatusOr<Subject> SubjectResolver::ResolvePath(const SubjectSpec& spec) {
  std::error_code error;
  const fs::path folder = fs::canonical(options_.folder / spec.revision, error);
  if (error || !fs::is_directory(folder)) {
    const fs::path looked_for = fs::absolute(options_.folder / spec.revision).lexically_normal();
    return absl::NotFoundError(
        absl::StrCat(spec.ToString(), ": no such folder",
                     looked_for == spec.revision ? "" : absl::StrCat(" as ", looked_for.string())));
  }
  ASSIGN_OR_RETURN(const PackageMetadata metadata, reader_.ReadDeclared(folder));
  Subject subject{.spec = {SourceKind::kPath, "", folder.string()}, .label = spec.revision};
  subject.tree = folder;
  absl::StatusOr<std::string> package = PackageIn(folder, metadata.name);
  if (!package.ok() && fs::is_directory(folder / "src", error)) {
    subject.tree = folder / "src";
    package = PackageIn(subject.tree, metadata.name);
  }
  if (!package.ok()) return WithContext(package.status(), spec.ToString());
  subject.package = *package;
  subject.spec.name = metadata.name.empty() ? *package : metadata.name;
  subject.requirements = metadata.requirements;
  ASSIGN_OR_RETURN(const std::string digest, TreeDigest(subject.tree / subject.package));
  subject.content = absl::StrCat("tree:", digest);
  return subject;
}

absl::StatusOr<std::string> SubjectResolver::PackageIn(const fs::path& tree,
                                                       const std::string& name) const {
  std::error_code error;
  std::vector<std::string> candidates;
  if (const Source* source = catalog_.Find(name)) candidates.push_back(source->package);
  std::string guess = NormalizedName(name);
  std::replace(guess.begin(), guess.end(), '-', '_');
  if (!guess.empty()) candidates.push_back(guess);
  for (const std::string& candidate : candidates) {
    if (fs::is_directory(tree / candidate, error)) return candidate;
  }
  std::vector<std::string> packages;
  for (const fs::directory_entry& entry : fs::directory_iterator(tree, error)) {
    if (fs::exists(entry.path() / "__init__.py", error))
      packages.push_back(entry.path().filename());
  }
  std::erase(packages, "tests");
  if (packages.size() == 1) return packages[0];
  std::sort(packages.begin(), packages.end());
  return absl::NotFoundError(absl::StrCat(
      tree.string(), " holds ", packages.empty() ? "no" : "more than one", " Python package",
      packages.empty() ? "" : absl::StrCat(" (", absl::StrJoin(packages, ", "), ")"),
      ", and no pyproject.toml or setup.py names one"));
}

}  // namespace bkm
