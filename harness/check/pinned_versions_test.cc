// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/pinned_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kCommit[] = "0123456789abcdef0123456789abcdef01234567";

// "verl 0.9.1", "torch: a range (>=2)"
std::vector<std::string> PinsOf(const std::string& text, const std::string& origin) {
  const absl::StatusOr<PinnedVersions> pins = PinnedVersionsOf(text, origin);
  if (!pins.ok()) return {std::string(pins.status().message())};
  std::vector<std::string> told;
  for (const VersionPin& pin : pins->packages) {
    told.push_back(pin.is_exact() ? absl::StrCat(pin.name, " ", pin.version, pin.commit)
                                  : absl::StrCat(pin.name, ": ", pin.why_open));
  }
  return told;
}

TEST(PinnedVersionsTest, ReadsWhatPipWrites) {
  EXPECT_THAT(PinsOf("# by pip-compile\n"
                     "verl[gpu] == 0.9.1  # why\r\n"
                     "Torch_Titan===0.3.0\n"
                     "torch==2.13.0+cpu \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n"
                     "--index-url https://example.org/simple\n\n",
                     "requirements.txt"),
              ElementsAre("verl 0.9.1", "torch-titan 0.3.0", "torch 2.13.0+cpu"));
}

TEST(PinnedVersionsTest, WhatHasNoOneVersionIsToldAndNotGuessed) {
  EXPECT_THAT(PinsOf("a>=1,<2\nb\nc==1.*\nd==1 ; python_version < '3.12'\n"
                     "e @ git+https://example.org/e@main\nf @ https://example.org/f.whl\n"
                     "g==1\ng==2\nh==1,!=1.1\n",
                     "r.txt"),
              ElementsAre("a: a range (>=1,<2)", "b: no version", "c: a range (==1.*)",
                          "d: a marker (only where python_version < '3.12')",
                          "e: a URL without a commit (git+https://example.org/e@main)",
                          "f: a URL without a commit (https://example.org/f.whl)",
                          "g: several entries (lines 7 and 8)", "h: a range (==1,!=1.1)"));
}

TEST(PinnedVersionsTest, ACommitIsOneVersion) {
  EXPECT_THAT(PinsOf(absl::StrCat("verl @ git+https://example.org/verl@", kCommit, "\n"), "r.txt"),
              ElementsAre(absl::StrCat("verl ", kCommit)));
}

TEST(PinnedVersionsTest, FilesThatAreNamedAreNotFollowed) {
  const PinnedVersions pins =
      *PinnedVersionsOf("-r base.txt\n-c limits.txt\n-e ../verl\n./local.whl\n", "r.txt");
  EXPECT_THAT(pins.packages, IsEmpty());
  EXPECT_THAT(pins.not_read,
              ElementsAre("line 1: -r base.txt is not read", "line 2: -c limits.txt is not read",
                          "line 3: -e ../verl is not read", "line 4: ./local.whl is not read"));
}

TEST(PinnedVersionsTest, ReadsUvLock) {
  EXPECT_THAT(PinsOf(absl::StrCat("version = 1\n[[package]]\nname = \"verl\"\nversion = \"0.9.1\"\n"
                                  "source = { registry = \"https://pypi.org/simple\" }\n"
                                  "[[package]]\nname = \"torchtitan\"\nversion = \"0.3.0.dev0\"\n"
                                  "source = { git = \"https://example.org/torchtitan?rev=main#",
                                  kCommit,
                                  "\" }\n[[package]]\nname = \"mine\"\nversion = \"1\"\n"
                                  "source = { editable = \".\" }\n"
                                  "[[package]]\nname = \"torch\"\nversion = \"2.13.0\"\n"
                                  "[[package]]\nname = \"torch\"\nversion = \"2.13.0+cpu\"\n"),
                     "uv.lock"),
              ElementsAre("verl 0.9.1", absl::StrCat("torchtitan ", kCommit),
                          "mine: a folder or a URL, not an index",
                          "torch: several entries (lines 14 and 17)"));
}

TEST(PinnedVersionsTest, ReadsPylock) {
  EXPECT_THAT(PinsOf(absl::StrCat("lock-version = \"1.0\"\n[[packages]]\nname = \"verl\"\n"
                                  "version = \"0.9.1\"\n[[packages]]\nname = \"torchtitan\"\n"
                                  "vcs = { type = \"git\", url = \"u\", commit-id = \"",
                                  kCommit,
                                  "\" }\n[[packages]]\nname = \"torch\"\nversion = \"2.13.0\"\n"
                                  "marker = \"sys_platform == 'linux'\"\n"),
                     "pylock.toml"),
              ElementsAre("verl 0.9.1", absl::StrCat("torchtitan ", kCommit),
                          "torch: a marker (only where sys_platform == 'linux')"));
}

// A fork has the version of what it was forked from.
TEST(PinnedVersionsTest, WhatComesFromNoIndexIsNotTheReleaseOfThatVersion) {
  const std::string package = "[[package]]\nname = \"verl\"\nversion = \"0.9.1\"\n";
  EXPECT_THAT(PinsOf(package + "source = { url = \"https://example.org/v.whl\" }\n", "uv.lock"),
              ElementsAre("verl: a folder or a URL, not an index"));
  EXPECT_THAT(PinsOf(absl::StrCat(package, "[package.source]\ntype = \"git\"\nurl = \"u\"\n",
                                  "resolved_reference = \"", kCommit, "\"\n"),
                     "poetry.lock"),
              ElementsAre(absl::StrCat("verl ", kCommit)));
  EXPECT_THAT(PinsOf(package + "[package.source]\ntype = \"file\"\nurl = \"u\"\n", "poetry.lock"),
              ElementsAre("verl: a folder or a URL, not an index"));
  EXPECT_THAT(PinsOf(package + "[package.source]\ntype = \"legacy\"\nurl = \"u\"\n", "poetry.lock"),
              ElementsAre("verl 0.9.1"));
  EXPECT_THAT(PinsOf("[[packages]]\nname = \"verl\"\nversion = \"0.9.1\"\n"
                     "archive = { url = \"u\" }\n",
                     "pylock.toml"),
              ElementsAre("verl: a folder or a URL, not an index"));
}

TEST(PinnedVersionsTest, ReadsPyproject) {
  EXPECT_THAT(PinsOf("[project]\nname = \"x\"\ndependencies = [\"verl==0.9.1\", \"torch>=2\"]\n"
                     "[project.optional-dependencies]\nhf = [\"transformers==5.10.2\"]\n"
                     "[dependency-groups]\ndev = [\"pytest\", {include-group = \"x\"}]\n",
                     "pyproject.toml"),
              ElementsAre("verl 0.9.1", "torch: a range (>=2)", "transformers 5.10.2",
                          "pytest: no version"));
}

TEST(PinnedVersionsTest, ADamagedFileIsOneSentenceWithItsLine) {
  EXPECT_THAT(
      PinsOf("verl==0.9.1\n<<<<<<< HEAD\n", "r.txt"),
      ElementsAre("r.txt: line 2: '<<<<<<< HEAD' is not a requirement, such as verl==0.9.1"));
  EXPECT_THAT(PinsOf("[[package]]\nname = \n", "uv.lock"),
              ElementsAre(HasSubstr("uv.lock: line 2: not TOML: ")));
  EXPECT_THAT(PinsOf("[[package]]\nversion = \"1\"\n", "uv.lock"),
              ElementsAre("uv.lock: line 1: a package without a name"));
  EXPECT_THAT(PinsOf("[tool.ruff]\nx = 1\n", "pyproject.toml"),
              ElementsAre(HasSubstr("pyproject.toml: it names no packages: ")));
  EXPECT_THAT(PinsOf(std::string("a\0b", 3), "r.txt"), ElementsAre("r.txt: it is not a text"));
}

}  // namespace
}  // namespace bkm
