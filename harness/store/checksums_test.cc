// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/checksums.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ChecksumsTest : public ::testing::Test {
 protected:
  ChecksumsTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "manifest-")) {
    Write("observation.json", "{}");
    Write("tensors/step_1", std::string(100000, 'x'));
    Write("tensors/deep/a b\n\xff%41", "odd name");
  }
  void Write(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(WriteScratchFile(folder_ / name, content).ok());
  }
  // Every damage must be found and named.
  void ExpectDamaged(const std::string& name) const {
    const absl::Status status = VerifyManifest(folder_);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr((folder_ / name).string()));
  }
  const fs::path folder_;
};

TEST_F(ChecksumsTest, WhatWasWrittenVerifies) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  EXPECT_EQ(VerifyManifest(folder_), absl::OkStatus());
  // A second manifest of the same files is the same.
  const std::string first = *ReadFile(folder_ / kManifestFile);
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  EXPECT_EQ(*ReadFile(folder_ / kManifestFile), first);
}

TEST_F(ChecksumsTest, FoldersOfOlderVersionsHaveNone) {
  EXPECT_TRUE(absl::IsNotFound(VerifyManifest(folder_)));
  EXPECT_TRUE(absl::IsNotFound(VerifyManifest(folder_ / "no-such-folder")));
}

TEST_F(ChecksumsTest, OneFlippedBitIsDamage) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  std::string content(100000, 'x');
  content[77777] ^= 1;
  Write("tensors/step_1", content);
  ExpectDamaged("tensors/step_1");
}

TEST_F(ChecksumsTest, MissingAndShortenedFilesAreDamage) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  fs::resize_file(folder_ / "tensors/step_1", 99999);
  ExpectDamaged("tensors/step_1");
  fs::remove(folder_ / "tensors/step_1");
  ExpectDamaged("tensors/step_1");
  fs::remove_all(folder_ / "tensors");
  ExpectDamaged("tensors/");
}

TEST_F(ChecksumsTest, AFileThatBecameALinkOrAPipeIsDamage) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  fs::rename(folder_ / "observation.json", folder_ / "elsewhere");
  fs::create_symlink("elsewhere", folder_ / "observation.json");
  ExpectDamaged("observation.json");
  fs::remove(folder_ / "observation.json");
  ASSERT_EQ(::mkfifo((folder_ / "observation.json").c_str(), 0600), 0);
  ExpectDamaged("observation.json");
}

TEST_F(ChecksumsTest, AFolderThatBecameALinkIsDamage) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  fs::rename(folder_ / "tensors", folder_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", folder_ / "tensors");
  EXPECT_EQ(VerifyManifest(folder_).code(), absl::StatusCode::kDataLoss);
}

TEST_F(ChecksumsTest, AnyFlippedBitOfTheManifestIsDamage) {
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  const std::string good = *ReadFile(folder_ / kManifestFile);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    Write(kManifestFile, bad);
    ASSERT_EQ(VerifyManifest(folder_).code(), absl::StatusCode::kDataLoss) << i;
    Write(kManifestFile, good.substr(0, i));
    ASSERT_EQ(VerifyManifest(folder_).code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST_F(ChecksumsTest, LinksAndPipesAreNotListed) {
  fs::create_symlink("/etc/passwd", folder_ / "link");
  fs::create_directory_symlink("/etc", folder_ / "folder-link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(WriteManifest(folder_), absl::OkStatus());
  const std::string text = *ReadFile(folder_ / kManifestFile);
  for (const char* name : {"link", "passwd", "pipe"})
    EXPECT_THAT(text, ::testing::Not(HasSubstr(name)));
  EXPECT_EQ(VerifyManifest(folder_), absl::OkStatus());
}

TEST_F(ChecksumsTest, ASealedFileTellsItsDamage) {
  const fs::path file = folder_ / "golden";
  Write("golden", "numbers");
  EXPECT_TRUE(absl::IsNotFound(VerifySealedFile(file)));
  ASSERT_EQ(SealFile(file), absl::OkStatus());
  EXPECT_EQ(VerifySealedFile(file), absl::OkStatus());
  Write("golden", "numberz");
  EXPECT_TRUE(absl::IsDataLoss(VerifySealedFile(file)));
  fs::remove(file);
  EXPECT_TRUE(absl::IsDataLoss(VerifySealedFile(file)));
  Write("golden", "numbers");
  Write("golden.sha256", "");
  EXPECT_TRUE(absl::IsDataLoss(VerifySealedFile(file)));
}

TEST_F(ChecksumsTest, AKeptFileThatIsDamagedIsSetAsideReportedAndMissing) {
  const fs::path file = folder_ / "lock.json";
  const std::string good = R"({"a": 1})";
  const auto read_again = [&](const std::string& damaged) {
    EXPECT_EQ(WriteKeptFile(file, good), absl::OkStatus());
    EXPECT_EQ(ReadKeptJson(file, {})->dump(), R"({"a":1})");
    if (damaged != good) Write("lock.json", damaged);
    std::vector<std::string> told;
    const auto report = [&](const std::string& what) { told.push_back(what); };
    const absl::StatusOr<std::string> text = ReadKeptFile(file, report);
    if (text.ok()) return *text;
    EXPECT_TRUE(absl::IsNotFound(text.status())) << text.status();
    EXPECT_THAT(told, ::testing::ElementsAre(::testing::EndsWith(": making it again")));
    EXPECT_FALSE(fs::exists(file));
    return std::string("missing");
  };
  EXPECT_EQ(read_again(good), good);
  EXPECT_EQ(read_again(R"({"a": 3})"), "missing");  // one bit
  EXPECT_EQ(read_again(R"({"a")"), "missing");
  EXPECT_EQ(read_again(""), "missing");
  EXPECT_TRUE(absl::IsNotFound(ReadKeptFile(folder_ / "absent", {}).status()));
}

TEST_F(ChecksumsTest, AKeptFileOfAnOlderVersionIsUsedIfItIsJson) {
  Write("old.json", "[1]");
  EXPECT_EQ(*ReadKeptJson(folder_ / "old.json", {}), Json::parse("[1]"));
  Write("old.json", "[1");
  EXPECT_TRUE(absl::IsNotFound(ReadKeptJson(folder_ / "old.json", {}).status()));
  EXPECT_FALSE(fs::exists(folder_ / "old.json"));
}

TEST_F(ChecksumsTest, WhatIsSetAsideReplacesNothing) {
  const fs::path first = *SetAside(folder_ / "observation.json");
  Write("observation.json", "second");
  const fs::path second = *SetAside(folder_ / "observation.json");
  EXPECT_EQ(*ReadFile(first), "{}");
  EXPECT_EQ(*ReadFile(second), "second");
  EXPECT_FALSE(fs::exists(folder_ / "observation.json"));
}

TEST_F(ChecksumsTest, OnlyTheNamedPartsAreListed) {
  Write("verdict.json", "later");
  ASSERT_EQ(WriteManifest(folder_, {"observation.json", "tensors", "stdout"}), absl::OkStatus());
  Write("verdict.json", "changed");
  EXPECT_EQ(VerifyManifest(folder_), absl::OkStatus());
  Write("tensors/step_1", "changed");
  ExpectDamaged("tensors/step_1");
  ASSERT_EQ(RemoveManifest(folder_), absl::OkStatus());
  ASSERT_EQ(RemoveManifest(folder_), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(VerifyManifest(folder_)));
}

}  // namespace
}  // namespace bkm
