// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/relation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTwoDocuments[] = {2, 3};

// One string per query, one character per key.
std::string Draw(const Relation& relation) {
  std::string drawn;
  for (int64_t query = 0; query < relation.tokens(); ++query) {
    for (int64_t key = 0; key < relation.tokens(); ++key)
      drawn += relation.Sees(query, key) ? 'x' : '.';
    drawn += '\n';
  }
  return drawn;
}

absl::Status Write(const std::filesystem::path& path, TensorType type, int64_t rows) {
  return WriteSafetensors(path, {{"ab", type, {rows, 2}, std::string{1, 0, 1, 1}}});
}

TEST(RelationTest, DocumentsKnowTheirTokens) {
  const PackedDocuments documents(kTwoDocuments);
  EXPECT_EQ(documents.tokens(), 5);
  EXPECT_EQ(documents.longest(), 3);
  EXPECT_EQ(documents.DocumentOf(1), 0);
  EXPECT_EQ(documents.DocumentOf(2), 1);
  EXPECT_EQ(documents.DocumentOf(5), -1);
  EXPECT_EQ(documents.DocumentOf(-1), -1);
  EXPECT_EQ(documents.Say(3), "token 3 (document 1, position 1)");
}

TEST(RelationTest, RightIsCausalInsideEachDocument) {
  EXPECT_EQ(Draw(RightRelation(PackedDocuments(kTwoDocuments), 0)),
            "x....\n"
            "xx...\n"
            "..x..\n"
            "..xx.\n"
            "..xxx\n");
}

TEST(RelationTest, WindowCountsTheQueryItself) {
  EXPECT_EQ(Draw(RightRelation(PackedDocuments(kTwoDocuments), 2)),
            "x....\n"
            "xx...\n"
            "..x..\n"
            "..xx.\n"
            "...xx\n");
}

TEST(RelationTest, FileIsReadByDigestAndCheckedForItsShape) {
  const std::filesystem::path cell = std::filesystem::path(::testing::TempDir()) / "relations";
  ASSERT_TRUE(Write(cell / "tensors/attended.safetensors", TensorType::kU8, 2).ok());
  const auto relations = ReadRelations(cell, 2);
  ASSERT_TRUE(relations.ok()) << relations.status();
  ASSERT_EQ(relations->size(), 1u);
  EXPECT_EQ(Draw(relations->at("ab")), "x.\nxx\n");
  EXPECT_THAT(std::string(ReadRelations(cell, 3).status().message()),
              HasSubstr("relation ab is not U8 of 3 x 3"));
}

TEST(RelationTest, MissingFileIsAnError) { EXPECT_FALSE(ReadRelations("/nowhere", 2).ok()); }

}  // namespace
}  // namespace bkm
