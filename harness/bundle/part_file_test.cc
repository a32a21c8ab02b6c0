// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PartFileTest : public ::testing::Test {
 protected:
  PartFileTest() : path_(*CreateTempDirectory(::testing::TempDir(), "parts-") / "a.bkm") {}

  // A file with one part, whose SHA-256 it returns.
  std::string Make(absl::string_view content) const {
    PartFile file = *PartFile::Open(path_);
    const std::string part = *file.Add(content);
    EXPECT_TRUE(file.SetName("it", part).ok());
    return part;
  }
  // Changes the file as an attacker can.
  void Forge(const char* sql) const {
    const Database database = *Database::Open({.path = path_,
                                               .wait = std::chrono::seconds(1),
                                               .application_id = 0x626b6d62,
                                               .travels = true});
    ASSERT_TRUE(database.Execute(sql).ok());
  }
  std::string Refusal() const {
    const absl::Status status = PartFile::OpenForReading(path_).status();
    return status.ok() ? "" : std::string(status.message());
  }
  // Why the file's part cannot be read.
  std::string RefusalOf(const std::string& part) const {
    const absl::Status status = PartFile::OpenForReading(path_)->Read(part).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }

  const fs::path path_;
};

TEST_F(PartFileTest, KeepsAContentOnceAndGivesItBack) {
  const std::string zeros(100'000, '\0');
  std::string noise;  // does not get smaller
  for (int i = 0; i < 100; ++i) noise += Sha256(absl::StrCat(i));
  PartFile file = *PartFile::Open(path_);
  for (const std::string& content : {zeros, noise, std::string(), zeros}) {
    const std::string part = *file.Add(content);
    EXPECT_EQ(part, Sha256(content));
    EXPECT_EQ(*file.Read(part), content);
  }
  const auto [parts, bytes] = *file.Size();
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(bytes, static_cast<int64_t>(zeros.size() + noise.size()));
  EXPECT_LT(fs::file_size(path_), zeros.size());
}

TEST_F(PartFileTest, NamesStandForParts) {
  PartFile file = *PartFile::Open(path_);
  ASSERT_TRUE(file.SetName("result/b", *file.Add("1")).ok());
  ASSERT_TRUE(file.SetName("result/a", *file.Add("2")).ok());
  ASSERT_TRUE(file.SetName("result/b", *file.Add("3")).ok());
  ASSERT_TRUE(file.SetName("manifest", *file.Add("4")).ok());
  const std::map<std::string, std::string> named = *file.Named("result/");
  EXPECT_EQ(named, (std::map<std::string, std::string>{{"a", Sha256("2")}, {"b", Sha256("3")}}));
  EXPECT_EQ(*file.PartOf("manifest"), Sha256("4"));
  EXPECT_THAT(std::string(file.PartOf("skipped").status().message()),
              HasSubstr("holds no skipped"));
}

TEST_F(PartFileTest, AFailedTransactionAddsNothing) {
  PartFile file = *PartFile::Open(path_);
  const absl::Status failed = file.Transact([&]() -> absl::Status {
    EXPECT_TRUE(file.Add("lost").ok());
    return absl::CancelledError("no");
  });
  EXPECT_TRUE(absl::IsCancelled(failed));
  EXPECT_EQ(file.Size()->first, 0);
}

TEST_F(PartFileTest, WhatAKillLeftUnfinishedIsUndone) {
  const std::string part = Make("content");
  const pid_t writer = ::fork();
  if (writer == 0) {
    PartFile file = *PartFile::Open(path_);
    file.Transact([&]() -> absl::Status {
          std::string noise;  // more than is kept in memory until the end
          for (int i = 0; i < 200'000; ++i) noise += Sha256(absl::StrCat(i));
          EXPECT_TRUE(file.Add(noise).ok());
          ::kill(::getpid(), SIGKILL);
          return absl::OkStatus();
        })
        .IgnoreError();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(PartFile::IsUnfinished(path_));
  EXPECT_THAT(Refusal(), HasSubstr("is not finished"));

  EXPECT_EQ(*PartFile::Open(path_)->Read(part), "content");
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(PartFile::OpenForReading(path_)->Size()->first, 1);
}

TEST_F(PartFileTest, TheFileAloneHoldsWhatWasAdded) {
  Make("content");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path_.parent_path())) files += entry.exists();
  EXPECT_EQ(files, 1);
}

TEST_F(PartFileTest, AMissingFileIsTold) {
  EXPECT_EQ(Refusal(), absl::StrCat(path_.string(), " is not a file"));
}

TEST_F(PartFileTest, AnotherKindOfFileIsRefused) {
  ASSERT_TRUE(WriteFile(path_, "no database at all, but long enough to look at").ok());
  EXPECT_THAT(Refusal(), StartsWith(path_.string()));
  ASSERT_TRUE(WriteFile(path_, "").ok());
  EXPECT_THAT(Refusal(), HasSubstr("made by another program"));
}

TEST_F(PartFileTest, ATruncatedFileIsRefused) {
  std::string noise;
  for (int i = 0; i < 1000; ++i) noise += Sha256(absl::StrCat(i));
  Make(noise);
  fs::resize_file(path_, fs::file_size(path_) / 2);
  EXPECT_THAT(Refusal(), HasSubstr("malformed"));
}

TEST_F(PartFileTest, ADamagedPartIsNamed) {
  std::string noise;
  for (int i = 0; i < 1000; ++i) noise += Sha256(absl::StrCat(i));
  const std::string part = Make(noise);
  Forge("UPDATE part SET content = CAST(replace(content, '7', '8') AS BLOB)");
  EXPECT_THAT(RefusalOf(part), HasSubstr(absl::StrCat("the part ", part, " is damaged")));
}

TEST_F(PartFileTest, AContentUnderAnotherHashIsRefused) {
  const std::string part = Make("content");
  Forge("UPDATE part SET content = CAST('forgery' AS BLOB), bytes = 7");
  EXPECT_THAT(RefusalOf(part), HasSubstr(absl::StrCat("the part ", part, " is damaged")));
}

TEST_F(PartFileTest, AMissingPartIsNamed) {
  const std::string part = Make("content");
  Forge("DELETE FROM part");
  EXPECT_THAT(RefusalOf(part), HasSubstr("is missing"));
}

TEST_F(PartFileTest, ANameThatIsNoHashIsRefused) {
  Make("content");
  EXPECT_THAT(RefusalOf("../../etc/passwd"), HasSubstr("has no name of a part"));
}

// A few bytes that claim to be many, and a content that is longer than it claims.
TEST_F(PartFileTest, ClaimsAboutSizesAreBounded) {
  const std::string part = Make(std::string(100'000, 'x'));
  Forge("UPDATE part SET bytes = 300 << 20");
  EXPECT_THAT(RefusalOf(part), HasSubstr("is too large"));
  Forge("UPDATE part SET bytes = 99999");
  EXPECT_THAT(RefusalOf(part), HasSubstr("is damaged"));
  Forge("UPDATE part SET bytes = 1");
  EXPECT_THAT(RefusalOf(part), HasSubstr("is damaged"));
  Forge("UPDATE part SET bytes = 1 << 50");
  EXPECT_THAT(Refusal(), HasSubstr("more than this bkm reads"));
}

// A view would be computed as long as its author likes.
TEST_F(PartFileTest, OtherTablesAreRefused) {
  Make("content");
  Forge("CREATE TABLE more(a)");
  EXPECT_THAT(Refusal(), HasSubstr("has other tables than this bkm knows"));
  EXPECT_TRUE(absl::IsDataLoss(PartFile::Open(path_).status()));
  Forge("DROP TABLE more");
  EXPECT_EQ(Refusal(), "");
  Forge(
      "DROP TABLE part; CREATE VIEW part AS WITH RECURSIVE n(sha256, bytes, content) AS (SELECT "
      "'', 1, '' UNION ALL SELECT '', 1, '' FROM n) SELECT * FROM n");
  EXPECT_THAT(Refusal(), HasSubstr("has other tables than this bkm knows"));
}

}  // namespace
}  // namespace bkm
