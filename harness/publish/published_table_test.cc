// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/published_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/shape_check.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

bool TableSchemaAccepts(const Json& json) {
  return SchemaAccepts("harness/publish/table.schema.json", json);
}

Json AsJson(const PublishedTable& table) { return Json::parse(ToText(ToJson(table))); }

TEST(PublishedTableTest, ComesBackFromItsJsonWhole) {
  const PublishedTable table = ATable();
  const absl::StatusOr<PublishedTable> back = PublishedTableFromJson(AsJson(table), "table.json");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, table);
}

TEST(PublishedTableTest, ItsSchemaNamesItsFields) {
  EXPECT_THAT(SchemaDifferences<PublishedTable>(*ReadJsonFile("harness/publish/table.schema.json")),
              ::testing::IsEmpty());
}

TEST(PublishedTableTest, KeepsToItsSchema) {
  Json json = AsJson(ATable());
  EXPECT_TRUE(TableSchemaAccepts(json));
  json["rows"][0]["status"] = "no";
  EXPECT_FALSE(TableSchemaAccepts(json));
}

TEST(PublishedTableTest, TheSchemaKnowsNoFolderAsAVersion) {
  Json json = AsJson(ATable());
  json["rows"][0]["engine_version"]["subject"] = "path:/somebody/verl";
  EXPECT_FALSE(TableSchemaAccepts(json));
}

TEST(PublishedTableTest, KeepsWhatRightCellsHideAndCost) {
  PublishedTable table = ATable();
  table.rows[0].cells[0].evidence.verdict.blind = {"errors of 100 % in 3 of 9 tensors"};
  table.rows[0].cells[0].evidence.cost = {2.5, 0.5, 950};
  EXPECT_TRUE(TableSchemaAccepts(AsJson(table)));
  EXPECT_EQ(*PublishedTableFromJson(AsJson(table), "table.json"), table);
}

TEST(PublishedTableTest, RefusesKeysThatItDoesNotKnow) {
  Json json = AsJson(ATable());
  json["rows"][0]["verdct"] = "ok";
  EXPECT_THAT(std::string(PublishedTableFromJson(json, "t.json").status().message()),
              ::testing::StartsWith("t.json: $.rows[0]: unknown key 'verdct'"));
}

TEST(PublishedTableTest, RefusesARowWithoutEvidence) {
  Json json = AsJson(ATable());
  json["rows"][0]["cells"][0].erase("evidence");
  EXPECT_EQ(PublishedTableFromJson(json, "t.json").status().message(),
            "t.json: $.rows[0].cells[0]: the key 'evidence' is missing");
  EXPECT_FALSE(TableSchemaAccepts(json));
}

// A row's lock is copied into the next table, and a table may come from anyone.
TEST(PublishedTableTest, RefusesALockThatLiesElsewhere) {
  for (const char* path : {"/etc/passwd", "../pylock.a.toml", "x/pylock.a.toml"}) {
    Json json = AsJson(ATable());
    json["rows"][0]["pylock"] = path;
    EXPECT_THAT(PublishedTableFromJson(json, "table.json").status().message(),
                HasSubstr("not a path"))
        << path;
  }
}

TEST(PublishedTableTest, RefusesWhatIsNoTable) {
  EXPECT_EQ(PublishedTableFromJson(Json{{"date", "2026-01-01"}}, "t.json").status().message(),
            "t.json: $.schema: it is missing: is this a published table?");
}

TEST(PublishedTableTest, ARowExpiresAfterItsLastDay) {
  PublishedRow row;
  row.expires = "2026-03-01";
  EXPECT_FALSE(IsExpired(row, "2026-03-01"));
  EXPECT_TRUE(IsExpired(row, "2026-03-02"));
}

}  // namespace
}  // namespace bkm
