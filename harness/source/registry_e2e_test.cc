// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Tests SubjectResolver against the real registry, with the real uv.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/source/subject_resolver.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<Uv> uv = Uv::Find();
    if (!uv.ok()) GTEST_SKIP() << uv.status().message();
    const ProcessResult asked = *uv->Run(
        {"pip", "compile", "--python", "/usr/bin/python3", "--no-deps", "-"}, "packaging==25.0\n");
    if (!asked.ok()) GTEST_SKIP() << "no registry: " << UvComplaint(asked);
    cache_ = *CreateTempDirectory(::testing::TempDir(), "registry-");
    resolver_ = std::make_unique<SubjectResolver>(
        catalog_, *uv,
        SubjectResolver::Options{.cache = cache_, .mirrors = "", .python = "/usr/bin/python3"});
  }
  absl::StatusOr<Subject> Resolve(const char* text) {
    return resolver_->Resolve(*ParseSubjectSpec(text));
  }

  SourceCatalog catalog_;
  fs::path cache_;
  std::unique_ptr<SubjectResolver> resolver_;
};

TEST_F(RegistryTest, ReleasedPackageBecomesATree) {
  const Subject subject = *Resolve("pypi:torchtitan==0.2.2");
  EXPECT_EQ(subject.spec.ToString(), "pypi:torchtitan==0.2.2");
  EXPECT_EQ(subject.package, "torchtitan");
  EXPECT_THAT(subject.date, MatchesRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]"));
  EXPECT_THAT(subject.requirements, Contains("torchdata>=0.8.0"));
  EXPECT_TRUE(fs::exists(subject.tree / "torchtitan/__init__.py"));
  EXPECT_TRUE(fs::exists(subject.tree / "torchtitan/__pycache__"));
}

TEST_F(RegistryTest, UnknownVersionNamesTheNearest) {
  const absl::Status status = Resolve("pypi:torchtitan==0.2.1.5").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(
      status.message(),
      "pypi:torchtitan==0.2.1.5: the registry has no such version (nearest: 0.2.1 and 0.2.2)");
}

}  // namespace
}  // namespace bkm
