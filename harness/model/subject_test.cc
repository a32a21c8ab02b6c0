// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/subject.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(SubjectSpecTest, ReadsTheThreeForms) {
  EXPECT_EQ(*ParseSubjectSpec("pypi:verl==0.9.1"),
            (SubjectSpec{SourceKind::kPypi, "verl", "0.9.1"}));
  EXPECT_EQ(*ParseSubjectSpec("git:verl@v0.8.0"),
            (SubjectSpec{SourceKind::kGit, "verl", "v0.8.0"}));
  EXPECT_EQ(*ParseSubjectSpec("path:../my-verl"),
            (SubjectSpec{SourceKind::kPath, "", "../my-verl"}));
}

TEST(SubjectSpecTest, GitRevisionIsAnythingGitTakes) {
  for (const char* revision :
       {"baba6d82e", "REV~1", "origin/main", "HEAD@{1}", "v0.8.0^{commit}"}) {
    EXPECT_EQ(ParseSubjectSpec(std::string("git:torchtitan@") + revision)->revision, revision);
  }
}

TEST(SubjectSpecTest, ToStringIsWhatWasRead) {
  for (const char* text : {"pypi:a-b==1.0rc1", "git:verl@HEAD~3", "path:/x/y z"}) {
    EXPECT_EQ(ParseSubjectSpec(text)->ToString(), text);
  }
}

TEST(SubjectSpecTest, ErrorSaysWhatIsWrongAndShowsTheForms) {
  const std::string forms = " (write pypi:verl==0.9.1, git:verl@v0.8.0 or path:../my-verl)";
  const auto error = [](const char* text) {
    return std::string(ParseSubjectSpec(text).status().message());
  };
  EXPECT_EQ(error("verl"), "'verl': not an engine or library that can be fetched" + forms);
  EXPECT_EQ(error("pypi:verl"), "'pypi:verl': an exact version is needed, as ==VERSION" + forms);
  EXPECT_EQ(error("pypi:verl==>=1"),
            "'pypi:verl==>=1': an exact version is needed after '=='" + forms);
  EXPECT_EQ(error("pypi:==1"), "'pypi:==1': a package name is needed after 'pypi:'" + forms);
  EXPECT_EQ(error("git:verl"), "'git:verl': a revision is needed, as @REVISION" + forms);
  EXPECT_EQ(error("git:verl@--all"),
            "'git:verl@--all': a single git revision is needed after '@'" + forms);
  EXPECT_EQ(error("git:verl@a..b"),
            "'git:verl@a..b': a single git revision is needed after '@'" + forms);
  EXPECT_EQ(error("git:../x@main"),
            "'git:../x@main': a source name is needed after 'git:'" + forms);
  EXPECT_EQ(error("path:"), "'path:': a folder is needed after 'path:'" + forms);
}

}  // namespace
}  // namespace bkm
