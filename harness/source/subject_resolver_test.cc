// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/subject_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/source/git_fixture.h"
#include "harness/source/subject_fault.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SubjectResolverTest : public ::testing::Test {
 protected:
  SubjectResolverTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "subject-")), origin_(root_ / "origin") {
    EXPECT_TRUE(catalog_
                    .Add(Json{{"pkg", {{"git", "file://" + origin_.folder().string()}}}}, "m.json",
                         "$.sources")
                    .ok());
  }
  absl::StatusOr<Subject> Resolve(const std::string& text) {
    return Resolver(Uv("/no/uv")).Resolve(*ParseSubjectSpec(text));
  }
  SubjectResolver Resolver(Uv uv) {
    return SubjectResolver(catalog_, std::move(uv),
                           {.cache = root_ / "cache", .mirrors = "", .python = "/usr/bin/python3"});
  }
  // A stand-in for uv: a shell script that gets the requirement on stdin.
  Uv FakeUv(const std::string& script) {
    EXPECT_TRUE(WriteFile(root_ / "uv", "#!/bin/sh\n" + script).ok());
    fs::permissions(root_ / "uv", fs::perms(0755));
    return Uv(root_ / "uv");
  }

  fs::path root_;
  GitFixture origin_;
  SourceCatalog catalog_;
};

TEST_F(SubjectResolverTest, GitSubjectIsExactDatedAndExtracted) {
  origin_.Write("pkg/__init__.py", "x = 1\n");
  origin_.Write("pkg/data.yaml", "a: 1\n");
  origin_.Write("pyproject.toml", "[project]\nname='pkg'\ndependencies=['numpy<2']\n");
  origin_.Write("docs/big.bin", "not part of it");
  const std::string id = origin_.Commit("Begin here", "2026-03-05");
  origin_.Git({"tag", "v1"});
  const Subject subject = *Resolve("git:pkg@v1");
  EXPECT_EQ(subject.spec.ToString(), "git:pkg@" + id);
  EXPECT_EQ(subject.label, "v1");
  EXPECT_EQ(subject.date, "2026-03-05");
  EXPECT_EQ(subject.title, "Begin here");
  EXPECT_EQ(subject.package, "pkg");
  EXPECT_EQ(subject.tree, root_ / "cache/trees" / ("pkg-" + id) / "tree");
  EXPECT_THAT(subject.requirements, ElementsAre("numpy<2"));
  EXPECT_EQ(*ReadFile(subject.tree / "pkg/data.yaml"), "a: 1\n");
  EXPECT_TRUE(fs::exists(subject.tree / "pkg/__pycache__"));
  EXPECT_FALSE(fs::exists(subject.tree / "docs"));
}

TEST_F(SubjectResolverTest, SourceFolderGoesOnThePath) {
  origin_.Write("src/pkg/__init__.py", "");
  const std::string id = origin_.Commit("Begin", "2026-03-05");
  EXPECT_EQ(Resolve("git:pkg@main")->tree, root_ / "cache/trees" / ("pkg-" + id) / "tree/src");
}

TEST_F(SubjectResolverTest, SamePackageContentHasTheSameIdentityInTwoCommits) {
  origin_.Write("pkg/__init__.py", "");
  const std::string first = origin_.Commit("Begin", "2026-03-05");
  origin_.Write("README.md", "hello");
  const std::string second = origin_.Commit("Say hello", "2026-03-06");
  EXPECT_EQ(Resolve("git:pkg@" + first)->content, Resolve("git:pkg@" + second)->content);
}

TEST_F(SubjectResolverTest, CommitWithoutThePackageIsAtFault) {
  origin_.Write("other/__init__.py", "");
  const std::string id = origin_.Commit("Begin", "2026-03-05");
  const Subject subject = *Resolve("git:pkg@main");
  EXPECT_EQ(subject.spec.ToString(), "git:pkg@" + id);
  EXPECT_EQ(subject.date, "2026-03-05");
  ASSERT_TRUE(subject.fault);
  EXPECT_EQ(subject.fault->ending, EndingKind::kSourceIncomplete);
  EXPECT_THAT(subject.fault->message, HasSubstr("has no folder pkg or src/pkg"));
}

TEST_F(SubjectResolverTest, HostileDeclarationIsTheFaultOfItsCommitAlone) {
  struct Case {
    const char* pyproject;
    EndingKind ending;
  };
  for (const Case& one : std::vector<Case>{
           {"[project]\nname='pkg'\ndependencies=['evil @ file:///tmp/x']\n",
            EndingKind::kRequirementNotAllowed},
           {"[project]\nname='pkg'\ndependencies=['-r /etc/passwd']\n",
            EndingKind::kRequirementNotAllowed},
           {"[project]\nname='pkg'\ndynamic=['dependencies']\n[tool.setuptools.dynamic]\n"
            "dependencies={file=['../../x']}\n",
            EndingKind::kRequirementNotAllowed},
           {"[project]\nname='pkg'\ndependencies=['numpy<<2']\n",
            EndingKind::kRequirementMalformed},
           {"[project]\ndependencies=5\n", EndingKind::kRequirementMalformed},
           {"[project\n", EndingKind::kRequirementMalformed}}) {
    origin_.Write("pkg/__init__.py", "x = 1\n");
    origin_.Write("pyproject.toml", one.pyproject);
    const std::string id = origin_.Commit("Be hostile", "2026-03-05");
    const absl::StatusOr<Subject> subject = Resolve("git:pkg@" + id);
    ASSERT_TRUE(subject.ok()) << subject.status();
    ASSERT_TRUE(subject->fault) << one.pyproject;
    EXPECT_EQ(subject->fault->ending, one.ending) << subject->fault->message;
    EXPECT_THAT(subject->requirements, ElementsAre());
  }
  origin_.Write("pyproject.toml", "[project]\nname='pkg'\ndependencies=['numpy<2']\n");
  EXPECT_FALSE(Resolve("git:pkg@" + origin_.Commit("Be good", "2026-03-06"))->fault);
}

TEST_F(SubjectResolverTest, RequirementThatAnEarlierVersionCachedIsChecked) {
  origin_.Write("pkg/__init__.py", "x = 1\n");
  origin_.Write("pyproject.toml", "[project]\nname='pkg'\n");
  origin_.Commit("Begin", "2026-03-05");
  const fs::path facts = Resolve("git:pkg@main")->tree.parent_path() / "subject.json";
  Json json = *ReadJsonFile(facts);
  json["requirements"] = {"evil @ file:///tmp/x"};
  ASSERT_TRUE(WriteFile(facts, ToText(json)).ok());
  ASSERT_TRUE(RemoveManifest(facts.parent_path()).ok());  // as earlier versions
  EXPECT_EQ(Resolve("git:pkg@main")->fault->ending, EndingKind::kRequirementNotAllowed);
}

TEST_F(SubjectResolverTest, DeclaredNameIsNoPath) {
  ASSERT_TRUE(WriteFile(root_ / "mine/fake/__init__.py", "").ok());
  for (const char* name : {"/etc", "../../etc", "a\\nb"}) {
    ASSERT_TRUE(
        WriteFile(root_ / "mine/pyproject.toml", "[project]\nname=\"" + std::string(name) + "\"\n")
            .ok());
    const Subject subject = *Resolve("path:" + (root_ / "mine").string());
    ASSERT_TRUE(subject.fault) << name;
    EXPECT_EQ(subject.fault->ending, EndingKind::kRequirementMalformed);
    EXPECT_EQ(subject.spec.name, "mine");
  }
}

TEST_F(SubjectResolverTest, MissingDocumentIsLeftOutAndMissingCodeIsAFault) {
  origin_.Write("pkg/__init__.py", "x = 1\n");
  origin_.Write("pkg/README.md", "a large picture book");
  origin_.Commit("Begin", "2026-03-05");
  origin_.Write("pkg/late.py", "y = 1\n");
  origin_.Commit("Go on", "2026-03-06");
  const auto remove = [&](const std::string& revision, const std::string& path) {
    const std::string hex = *(*GitRepository(origin_.git_dir()).ObjectId(revision, path));
    fs::remove(origin_.git_dir() / "objects" / hex.substr(0, 2) / hex.substr(2));
  };
  remove("main", "pkg/README.md");
  remove("main", "pkg/late.py");
  // A mirror, which cannot fetch missing objects.
  fs::create_directories(root_ / "mirrors");
  fs::create_directory_symlink(origin_.git_dir(), root_ / "mirrors/pkg.git");
  SubjectResolver resolver(
      catalog_, Uv("/no/uv"),
      {.cache = root_ / "cache", .mirrors = root_ / "mirrors", .python = "/usr/bin/python3"});

  const absl::StatusOr<Subject> before = resolver.Resolve(*ParseSubjectSpec("git:pkg@main~1"));

  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(fs::exists(before->tree / "pkg/__init__.py"));
  EXPECT_FALSE(fs::exists(before->tree / "pkg/README.md"));
  EXPECT_THAT((*resolver.Listing(*before))->files(),
              ElementsAre(testing::Pair("pkg/__init__.py", BlobId("x = 1\n"))));
  const Subject after = *resolver.Resolve(*ParseSubjectSpec("git:pkg@main"));
  ASSERT_TRUE(after.fault.has_value());
  EXPECT_EQ(after.fault->ending, EndingKind::kSourceIncomplete);
  EXPECT_THAT(after.fault->message, HasSubstr("lacks the file pkg/late.py"));
}

TEST_F(SubjectResolverTest, ListingIsOfTheImportPathAndSurvivesItsFile) {
  origin_.Write("src/pkg/__init__.py", "x = 1\n");
  origin_.Write("pyproject.toml", "[project]\nname='pkg'\n");
  origin_.Commit("Begin", "2026-03-05");
  const Subject subject = *Resolve("git:pkg@main");
  const auto expected = ElementsAre(testing::Pair("pkg/__init__.py", BlobId("x = 1\n")));
  EXPECT_THAT((*Resolver(Uv("/no/uv")).Listing(subject))->files(), expected);
  // As in caches that earlier versions wrote.
  const fs::path folder = subject.tree.parent_path().parent_path();
  ASSERT_TRUE(fs::remove(folder / "files.txt"));
  EXPECT_THAT((*Resolver(Uv("/no/uv")).Listing(subject))->files(), expected);
  ASSERT_TRUE(fs::remove(folder / "files.txt"));
  ASSERT_TRUE(WriteFile(folder / "listing.txt", BlobId("x = 1\n") + " pkg/__init__.py\n").ok());
  EXPECT_THAT((*Resolver(Uv("/no/uv")).Listing(subject))->files(), expected);
}

TEST_F(SubjectResolverTest, PathIsUsedInPlaceAndIdentifiedByContent) {
  ASSERT_TRUE(WriteFile(root_ / "mine/fake_engine/__init__.py", "x = 1\n").ok());
  ASSERT_TRUE(WriteFile(root_ / "mine/pyproject.toml",
                        "[project]\nname='fake-engine'\ndependencies=['a']\n")
                  .ok());
  const std::string spec = "path:" + (root_ / "mine").string();
  const Subject subject = *Resolve(spec);
  EXPECT_EQ(subject.tree, root_ / "mine");
  EXPECT_EQ(subject.package, "fake_engine");
  EXPECT_EQ(subject.spec.name, "fake-engine");
  EXPECT_EQ(subject.date, "");
  EXPECT_THAT(subject.requirements, ElementsAre("a"));
  ASSERT_TRUE(WriteFile(root_ / "mine/fake_engine/__pycache__/a.pyc", "noise").ok());
  EXPECT_EQ(Resolve(spec)->content, subject.content);
  ASSERT_TRUE(WriteFile(root_ / "mine/fake_engine/__init__.py", "x = 2\n").ok());
  EXPECT_NE(Resolve(spec)->content, subject.content);
}

TEST_F(SubjectResolverTest, RelativePathStartsAtTheGivenFolderAndKeepsItsName) {
  ASSERT_TRUE(WriteFile(root_ / "matrices/deep/matrix.json", "{}").ok());
  ASSERT_TRUE(WriteFile(root_ / "mine/fake_engine/__init__.py", "x = 1\n").ok());
  SubjectResolver resolver(
      catalog_, Uv("/no/uv"),
      {.cache = root_ / "cache", .python = "/usr/bin/python3", .folder = root_ / "matrices/deep"});

  const absl::StatusOr<Subject> subject = resolver.Resolve(*ParseSubjectSpec("path:../../mine"));

  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_EQ(subject->tree, root_ / "mine");
  EXPECT_EQ(subject->spec.ToString(), "path:" + (root_ / "mine").string());
  EXPECT_EQ(subject->label, "../../mine");
  EXPECT_EQ(resolver.Resolve(*ParseSubjectSpec("path:../mine")).status().message(),
            "path:../mine: no such folder as " + (root_ / "matrices/mine").string());
}

TEST_F(SubjectResolverTest, PathWithoutPackageSaysSo) {
  fs::create_directories(root_ / "empty");
  const Subject empty = *Resolve("path:" + (root_ / "empty").string());
  EXPECT_EQ(empty.fault->ending, EndingKind::kInstallFailed);
  EXPECT_THAT(empty.fault->message, HasSubstr("holds no Python package"));
  EXPECT_EQ(Resolve("path:/no/such").status().message(), "path:/no/such: no such folder");
}

TEST_F(SubjectResolverTest, HostileTreeIsAFaultOfItsCommitAndItsNeighbourIsFine) {
  // A mirror: git itself refuses to fetch some of these.
  fs::create_directories(root_ / "mirrors");
  fs::create_directory_symlink(origin_.git_dir(), root_ / "mirrors/pkg.git");
  SubjectResolver resolver(
      catalog_, Uv("/no/uv"),
      {.cache = root_ / "cache", .mirrors = root_ / "mirrors", .python = "/usr/bin/python3"});
  origin_.Write("pkg/__init__.py", "x = 1\n");
  const std::string good = origin_.Commit("Begin", "2026-03-05");
  const std::string blob = origin_.WriteRaw("blob", "x = 1\n");
  const std::string pkg =
      origin_.WriteRaw("tree", GitFixture::Entry("100644", "__init__.py", blob));
  for (const std::string& root : {
           GitFixture::Entry("40000", "..", pkg) + GitFixture::Entry("40000", "pkg", pkg),
           GitFixture::Entry("40000", "pkg", pkg) + GitFixture::Entry("40000", "pkg", pkg),
           GitFixture::Entry("40000", "pkg",
                             origin_.WriteRaw("tree", GitFixture::Entry("100644", ".git", blob))),
       }) {
    const std::string bad = origin_.CommitRaw(origin_.WriteRaw("tree", root));
    const absl::StatusOr<Subject> subject = resolver.Resolve(*ParseSubjectSpec("git:pkg@" + bad));
    ASSERT_TRUE(subject.ok()) << subject.status();
    ASSERT_TRUE(subject->fault.has_value());
    EXPECT_EQ(subject->fault->ending, EndingKind::kTreeNotAllowed);
    EXPECT_EQ(subject->spec.revision, bad);
    EXPECT_EQ(resolver.Resolve(*ParseSubjectSpec("git:pkg@" + good))->fault.has_value(), false);
  }
}

TEST_F(SubjectResolverTest, PackageFolderThatLeadsOutOfAPathSubjectIsNotRead) {
  ASSERT_TRUE(WriteFile(root_ / "outside/__init__.py", "secret = 1\n").ok());
  fs::create_directories(root_ / "mine");
  fs::create_directory_symlink(root_ / "outside", root_ / "mine/fake_engine");
  const absl::StatusOr<Subject> subject = Resolve("path:" + (root_ / "mine").string());
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_TRUE(subject->fault.has_value());
  EXPECT_TRUE(subject->tree.empty());
}

TEST_F(SubjectResolverTest, UnknownPypiPackageIsNotFoundWithASuggestion) {
  SubjectResolver resolver = Resolver(
      FakeUv("echo 'error: No solution found when resolving dependencies' >&2\n"
             "echo '  cause: Because vrl was not found in the package registry and you require "
             "vrl==1, we can conclude that your requirements are unsatisfiable.' >&2\nexit 1\n"));
  const absl::Status status = resolver.Resolve(*ParseSubjectSpec("pypi:vrl==1")).status();
  EXPECT_EQ(status, absl::NotFoundError("pypi:vrl==1: the registry has no package 'vrl': did you "
                                        "mean 'verl'?"));
}

TEST_F(SubjectResolverTest, MissingNetworkIsUnavailableWithAHint) {
  SubjectResolver resolver = Resolver(
      FakeUv("echo 'error: Request failed after 3 retries in 6.9s' >&2\n"
             "echo '  cause: Failed to fetch: https://example.org/simple/verl/' >&2\nexit 2\n"));
  const absl::Status status = resolver.Resolve(*ParseSubjectSpec("pypi:verl==1")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cannot look up pypi:verl==1"), HasSubstr("check the network")));
}

TEST_F(SubjectResolverTest, LibraryOfTheRuntimeIsAPinWithoutATree) {
  const std::string lock =
      "[[packages]]\nname='transformers'\nversion='5.10.2'\nwheels=[{url='u',"
      "upload-time=2026-07-01T00:00:00Z,hashes={sha256='ab'}}]\n";
  const Subject subject = *Resolver(FakeUv("cat <<'E'\n" + lock + "E\n"))
                               .Resolve(*ParseSubjectSpec("pypi:transformers==5.10.2"));
  EXPECT_EQ(subject.tree, fs::path());
  EXPECT_EQ(subject.date, "2026-07-01");
  EXPECT_THAT(subject.requirements, ElementsAre("transformers==5.10.2"));
  // The answer is cached, so this needs no registry.
  EXPECT_EQ(Resolve("pypi:transformers==5.10.2")->date, "2026-07-01");
}

TEST_F(SubjectResolverTest, DamagedAnswerOfTheRegistryIsAskedForAgain) {
  const std::string lock =
      "[[packages]]\nname='transformers'\nversion='5.10.2'\nwheels=[{url='u',"
      "upload-time=2026-07-01T00:00:00Z,hashes={sha256='ab'}}]\n";
  const auto date = [&] {
    return Resolver(FakeUv("cat <<'E'\n" + lock + "E\n"))
        .Resolve(*ParseSubjectSpec("pypi:transformers==5.10.2"))
        ->date;
  };
  ASSERT_EQ(date(), "2026-07-01");
  const fs::path answer = root_ / "cache/registry/transformers==5.10.2.json";
  std::string text = *ReadFile(answer);
  text.replace(text.find("2026"), 4, "2027");
  ASSERT_TRUE(WriteFile(answer, text).ok());
  EXPECT_EQ(date(), "2026-07-01");
}

}  // namespace
}  // namespace bkm
