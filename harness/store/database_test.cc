// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kTable[] = "CREATE TABLE IF NOT EXISTS names(name TEXT NOT NULL UNIQUE)";

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest()
      : path_(*CreateTempDirectory(::testing::TempDir(), "database-") / "new/a.sqlite") {}
  absl::StatusOr<Database> Open() {
    return Database::Open({path_, "remove this file", std::chrono::milliseconds(10)});
  }
  Database OpenWithTable() {
    Database database = *Open();
    EXPECT_TRUE(database.Execute(kTable).ok());
    return database;
  }
  fs::path path_;
};

TEST_F(DatabaseTest, TextsAreReadBackUnchanged) {
  const Database database = OpenWithTable();
  const std::string zero("a\0b", 3);
  for (absl::string_view name : {absl::string_view("it's"), absl::string_view(zero),
                                 absl::string_view("\xC3\xA9"), absl::string_view()})
    ASSERT_TRUE(database.Run("INSERT INTO names VALUES(?)", {name}).ok()) << name;
  EXPECT_THAT(*database.Query("SELECT name FROM names ORDER BY rowid"),
              ElementsAre("it's", zero, "\xC3\xA9", ""));
  EXPECT_EQ(*database.QueryOne("SELECT name FROM names WHERE name = ?", {zero}), zero);
  EXPECT_EQ(*database.QueryOne("SELECT name FROM names WHERE name = ?", {"none"}), std::nullopt);
}

class TravellingDatabaseTest : public DatabaseTest {
 protected:
  Database::Options Options() const {
    return {.path = path_,
            .if_damaged = "copy it again",
            .wait = std::chrono::milliseconds(10),
            .travels = true,
            .tables = {"CREATE TABLE a (x TEXT PRIMARY KEY)", "CREATE TABLE b (y TEXT)"}};
  }
};

TEST_F(TravellingDatabaseTest, OneFileHoldsAll) {
  const Database database = *Database::Open(Options());
  ASSERT_TRUE(database.Run("INSERT INTO a VALUES(?)", {"1"}).ok());
  for (const auto& entry : fs::directory_iterator(path_.parent_path()))
    EXPECT_EQ(entry.path(), path_);
  EXPECT_THAT(*Database::OpenForReading(Options())->Query("SELECT x FROM a"), ElementsAre("1"));
}

TEST_F(TravellingDatabaseTest, AReaderWritesNothing) {
  EXPECT_TRUE(absl::IsNotFound(Database::OpenForReading(Options()).status()));
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(Database::Open(Options()).ok());
  const Database reader = *Database::OpenForReading(Options());
  EXPECT_TRUE(absl::IsDataLoss(reader.Run("INSERT INTO a VALUES(?)", {"1"})));
}

TEST_F(TravellingDatabaseTest, OnlyTheExpectedTablesAreRead) {
  ASSERT_TRUE(Database::Open(Options()).ok());
  Database::Options fewer = Options();
  fewer.tables.pop_back();
  for (const auto& status :
       {Database::OpenForReading(fewer).status(), Database::Open(fewer).status()}) {
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("has other tables than this bkm knows (copy it again)"));
  }
}

TEST_F(DatabaseTest, FailedTransactionChangesNothingAndTheNextOneWorks) {
  const Database database = OpenWithTable();
  const auto insert = [&](absl::string_view name) {
    return database.Run("INSERT INTO names VALUES(?)", {name});
  };
  const absl::Status failed = database.Transact([&] {
    EXPECT_TRUE(insert("a").ok());
    return insert("a");  // not unique
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(*database.Query("SELECT name FROM names"), IsEmpty());
  EXPECT_TRUE(database.Transact([&] { return insert("b"); }).ok());
  EXPECT_THAT(*database.Query("SELECT name FROM names"), ElementsAre("b"));
}

TEST_F(DatabaseTest, FileThatIsNotADatabaseIsDataLossWithAdvice) {
  ASSERT_TRUE(WriteFile(path_, std::string(8192, 'x')).ok());
  EXPECT_EQ(Open().status(), absl::DataLossError(absl::StrCat(
                                 path_.string(), ": file is not a database (remove this file)")));
}

TEST_F(DatabaseTest, DamagedFileIsSetAsideOnceAndANewOneIsUsed) {
  const Database::Options options{path_, "remove this file", std::chrono::milliseconds(10)};
  ASSERT_TRUE(OpenWithTable().Run("INSERT INTO names VALUES(?)", {"a"}).ok());
  EXPECT_EQ(Database::OpenOrSetAside(options)->set_aside(), "");
  std::string content = *ReadFile(path_);
  // The second page holds the table.
  for (size_t i = 4096; i < content.size(); i += 16) content[i] = static_cast<char>(0xA5);
  ASSERT_TRUE(WriteFile(path_, content).ok());
  const absl::Status damaged = Open().status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(damaged.message(), Not(HasSubstr("\n"))) << "quick_check answers in several lines";

  const Database fresh = *Database::OpenOrSetAside(options);

  EXPECT_THAT(fresh.set_aside(), HasSubstr(path_.string() + " is damaged"));
  EXPECT_THAT(fresh.set_aside(), HasSubstr("it is kept as a.sqlite.damaged-"));
  ASSERT_TRUE(fresh.Execute(kTable).ok());
  EXPECT_THAT(*fresh.Query("SELECT name FROM names"), IsEmpty());
  EXPECT_EQ(Database::OpenOrSetAside(options)->set_aside(), "");
}

TEST_F(DatabaseTest, FileOfAnotherProgramIsDataLoss) {
  ASSERT_TRUE(Open()->Execute("PRAGMA application_id=42").ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DatabaseTest, DatabaseWithOtherTablesIsDataLossWithAdvice) {
  ASSERT_TRUE(Open()->Execute("CREATE TABLE names(other TEXT)").ok());
  const Database database = OpenWithTable();
  EXPECT_EQ(database.Query("SELECT name FROM names").status(),
            absl::DataLossError(
                absl::StrCat(path_.string(), ": no such column: name (remove this file)")));
}

TEST_F(DatabaseTest, LockHeldLongerThanTheWaitIsUnavailable) {
  const Database holder = OpenWithTable(), other = *Open();
  absl::Status refused;
  ASSERT_TRUE(holder
                  .Transact([&] {
                    refused = other.Run("INSERT INTO names VALUES(?)", {"a"});
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(refused, absl::UnavailableError(
                         absl::StrCat(path_.string(),
                                      ": database is locked (another process is using this "
                                      "file: try again when that process has ended)")));
  EXPECT_TRUE(other.Run("INSERT INTO names VALUES(?)", {"a"}).ok());
}

TEST_F(DatabaseTest, PathThatCannotBeOpenedIsUnavailableAndNamed) {
  ASSERT_TRUE(CreateDirectories(path_).ok());
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_.string() + ": unable to open"));
}

}  // namespace
}  // namespace bkm
