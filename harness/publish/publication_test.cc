// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Runs become a folder of files. The registry is a uv that answers nothing.
#include "harness/publish/publication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/base/files.h"
#include "harness/base/shape_check.h"
#include "harness/publish/faults.h"
#include "harness/publish/testing_runs.h"
#include "harness/runtime/runtime_lock.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PublicationTest : public ::testing::Test {
 protected:
  PublicationTest()
      : folder_(*CreateTempDirectory(::testing::TempDir(), "publication")),
        registry_(Uv("/bin/true"), "/usr/bin/python3"),
        sources_(catalog_, folder_ / "mirrors", "/dev/null/clones"),
        history_(catalog_, sources_, [](const auto&, const auto&) { return std::string(); }) {
    lock_ = {.runtime = "cpu", .policy = "as-of", .python = "3.11"};
    lock_.packages = {{"numpy", "2.4.6", {"aa"}}};
  }

  absl::StatusOr<Publication> Make(std::vector<CellRecord> cells) {
    runs_ = {ARun("../run", std::move(cells))};
    return MakePublication(runs_,
                           {.date = "2026-06-11", .max_age_days = 30, .cache = folder_ / "cache"},
                           catalog_, history_, registry_);
  }
  void KeepLock() {
    ASSERT_TRUE(WriteFile(folder_ / "cache/locks/x.json", ToText(ToJson(lock_))).ok());
  }
  CellRecord WithLock(CellRecord record) {
    record.lock = lock_.Key();
    return record;
  }
  std::set<std::string> FilesIn(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) names.insert(entry.path().lexically_relative(folder).string());
    }
    return names;
  }

  const fs::path folder_;
  SourceCatalog catalog_;
  Registry registry_;
  GitSources sources_;
  VersionHistory history_;
  RuntimeLock lock_;
  std::vector<RunEvidence> runs_;
};

TEST_F(PublicationTest, TheTableOfARunKeepsToItsSchemaAndReadsBack) {
  CellRecord unresolved = ARecord("varlen", {.kind = VerdictKind::kBroken,
                                             .stage = Stage::kResolve,
                                             .reason = "no-solution",
                                             .message = "numpy<2 contradicts numpy>=2"});
  unresolved.lock.clear();
  unresolved.cell.engine = "verl-fsdp";
  unresolved.cell.library_subject.reset();
  unresolved.cell.library_label.clear();
  const absl::StatusOr<Publication> publication =
      Make({WithLock(ARecord("flex", Ok())), ARecord("sdpa", Broken()), unresolved});
  ASSERT_TRUE(publication.ok()) << publication.status();
  ASSERT_TRUE(WritePublication(*publication, folder_ / "out").ok());
  const Json json = *ReadJsonFile(folder_ / "out/table.json");
  EXPECT_TRUE(SchemaAccepts("harness/publish/table.schema.json", json)) << json;
  EXPECT_EQ(*PublishedTableFromJson(json, "table.json"), publication->table);
}

TEST_F(PublicationTest, WhatAnOlderTableHadAndThisOneHasNotIsRemoved) {
  const fs::path out = folder_ / "out";
  for (const char* name : {"table.json", "pylock.old.toml", "badges/old.json",
                           "constraints/old.txt", "notes.txt", "badges/logo.svg"})
    ASSERT_TRUE(WriteFile(out / name, "{}").ok());
  ASSERT_TRUE(WritePublication(*Make({ARecord("flex", Broken())}), out).ok());
  EXPECT_THAT(
      FilesIn(out),
      ElementsAre("badges/logo.svg",
                  "badges/verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0.json",
                  "badges/verl-torchtitan.json", "findings.md", "junit.xml", "known-bad.json",
                  "notes.txt", "summary.md", "table.csv", "table.json", "table.md"));
}

TEST_F(PublicationTest, WhatIsWrongIsAListForOtherTools) {
  const Publication publication = *Make({ARecord("flex", Ok()), ARecord("sdpa", Broken())});
  ASSERT_TRUE(WritePublication(publication, folder_ / "out").ok());
  const Json json = *ReadJsonFile(folder_ / "out/known-bad.json");
  constexpr char kSchema[] = "harness/publish/known-bad.schema.json";
  EXPECT_TRUE(SchemaAccepts(kSchema, json)) << json;
  EXPECT_THAT(SchemaDifferences<KnownBadList>(*ReadJsonFile(kSchema)), IsEmpty());
  ASSERT_EQ(json["known_bad"].size(), 1u);
  EXPECT_EQ(json["known_bad"][0]["condition"], Json({{"attention", "sdpa"}}));
}

TEST_F(PublicationTest, TheNewestGoodRowOfAnEngineGivesItsConstraints) {
  KeepLock();
  const Publication publication = *Make({WithLock(ARecord("flex", Ok()))});
  ASSERT_EQ(publication.constraints.size(), 1u);
  const auto& [name, text] = *publication.constraints.begin();
  EXPECT_EQ(name, "constraints/verl-torchtitan-v0.8.0.txt");
  EXPECT_THAT(text, HasSubstr("\ntorchtitan==0.3.0\n"));
  EXPECT_THAT(text, HasSubstr("\nverl @ git+https://github.com/verl-project/verl@"));
  EXPECT_THAT(text, HasSubstr("\nnumpy==2.4.6\n"));
}

TEST_F(PublicationTest, AGoodRowWhoseLockIsNowhereIsSaidToHaveNone) {
  const absl::StatusOr<Publication> publication = Make({WithLock(ARecord("flex", Ok()))});
  EXPECT_THAT(publication->notes, ElementsAre(HasSubstr("is neither in a run nor in the cache")));
  EXPECT_EQ(publication->table.rows[0].pylock, "");
  EXPECT_THAT(publication->table.rows[0].install,
              ElementsAre("pip install 'verl @ git+https://github.com/verl-project/"
                          "verl@7aed6b230776f963fa09509c10d9c3a767d1102c' 'torchtitan==0.3.0' "
                          "'torch==2.13.0'"));
}

TEST_F(PublicationTest, AGoodRowWhosePinsAreGoneIsSaidToHaveNoLock) {
  KeepLock();
  const absl::StatusOr<Publication> publication = Make({WithLock(ARecord("flex", Ok()))});
  EXPECT_THAT(publication->notes, ElementsAre(HasSubstr("is no longer in the registry")));
  EXPECT_EQ(publication->table.rows[0].python, "3.11");
}

TEST_F(PublicationTest, ARedRowIsNotInstalled) {
  KeepLock();
  const absl::StatusOr<Publication> publication = Make({WithLock(ARecord("flex", Broken()))});
  EXPECT_THAT(publication->notes, IsEmpty());
  EXPECT_THAT(publication->table.rows[0].install, IsEmpty());
}

TEST_F(PublicationTest, RunsWithoutAnyPairAreRefused) {
  CellRecord control = ARecord("flex", Ok());
  control.cell.engine = "torchtitan";
  control.cell.engine_subject.reset();
  EXPECT_THAT(std::string(Make({control}).status().message()),
              HasSubstr("there is no row to publish"));
}

TEST(VerificationTest, IsToldInWordsAndByItsSchema) {
  const Verification found{
      .rows = 3,
      .locks = 2,
      .pins = 7,
      .stale = {{.row = "a", .expired = true},
                {.row = "b", .gone = {"x==1", "y==2"}, .yanked = {"z==3 (broken)"}}}};
  EXPECT_EQ(VerificationText(found),
            "a: its evidence is too old\n"
            "b: gone: x==1, y==2; yanked: z==3 (broken)\n"
            "3 rows, 2 locks with 7 pins looked up: 2 rows no longer hold\n");
  EXPECT_TRUE(
      SchemaAccepts("harness/publish/verify.schema.json", Json::parse(ToText(ToJson(found)))));
  EXPECT_THAT(SchemaDifferences<Verification>(*ReadJsonFile("harness/publish/verify.schema.json")),
              IsEmpty());
}

}  // namespace
}  // namespace bkm
