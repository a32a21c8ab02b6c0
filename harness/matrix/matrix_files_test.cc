// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The parser and the schema accept every committed matrix. Every bad one is refused with the
// message in the file beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/shape_check.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/matrix/testing_plan.h"
#include "harness/model/cell_key.h"
#include "harness/model/engine_kind.h"
#include "harness/report/expectations.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesIn(const char* folder, const char* prefix) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, ".json") &&
        !absl::EndsWith(name, ".schema.json"))
      files.insert(entry.path());
  }
  return {files.begin(), files.end()};
}

std::string NameOf(const ::testing::TestParamInfo<fs::path>& info) {
  return info.param.stem().string();
}

class MatrixFilesTest : public ::testing::TestWithParam<fs::path> {
 protected:
  static bool SchemaAccepts(const Json& json) {
    return bkm::SchemaAccepts("matrices/matrix.schema.json", json);
  }
};

using GoodMatrixTest = MatrixFilesTest;
TEST_P(GoodMatrixTest, ConfigIsValid) {
  const absl::StatusOr<Matrix> matrix = ReadMatrix(GetParam());
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_TRUE(SchemaAccepts(*ReadJsonFile(GetParam())));
  EXPECT_EQ(matrix->name, GetParam().stem().string());
}
TEST_P(GoodMatrixTest, EveryExclusionMatchesACell) {
  const absl::Status status = ExpandMatrix(*ReadMatrix(GetParam()), {}, Unresolved()).status();
  EXPECT_TRUE(status.ok()) << status;
}
INSTANTIATE_TEST_SUITE_P(Matrices, GoodMatrixTest, ::testing::ValuesIn(FilesIn("matrices", "")),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Fixtures, GoodMatrixTest,
                         ::testing::Values("fixtures/matrices/eras.json",
                                           "fixtures/matrices/hostile.json",
                                           "fixtures/matrices/proof.json"),
                         NameOf);

TEST(MatrixSchemaTest, AnExclusionTakesTheKeysOfACell) {
  const Json schema = *ReadJsonFile("matrices/matrix.schema.json");
  std::set<std::string> keys = {"why"}, properties;
  for (const CellKey& key : CellKeys()) keys.insert(key.name);
  for (const auto& [key, value] : schema["definitions"]["exclusion"]["properties"].items())
    properties.insert(key);
  EXPECT_EQ(properties, keys);
}

TEST(MatrixSchemaTest, NamesTheFieldsOfLimitsAndOfTheOptimizer) {
  const Json schema = *ReadJsonFile("matrices/matrix.schema.json");
  EXPECT_THAT(SchemaDifferences<CellLimits>(schema["properties"]["limits"], SchemaSide::kReader),
              ::testing::IsEmpty());
  EXPECT_THAT(
      SchemaDifferences<OptimizerSettings>(schema["definitions"]["optimizer"], SchemaSide::kReader),
      ::testing::IsEmpty());
}

TEST(MatrixSchemaTest, KnowsTheEngineKindsAndTheirAttentions) {
  const Json definitions = (*ReadJsonFile("matrices/matrix.schema.json"))["definitions"];
  EXPECT_EQ(definitions["group"]["properties"]["engine"]["properties"]["kind"]["enum"],
            Json(EngineKindNames()));
  std::set<std::string> attentions;
  for (const EngineKind& kind : EngineKinds())
    attentions.insert(kind.attentions.begin(), kind.attentions.end());
  const std::vector<std::string> known = definitions["attention"]["enum"];
  EXPECT_EQ(std::set<std::string>(known.begin(), known.end()), attentions);
}

TEST(ExpectationFilesTest, EveryFileParsesAndBelongsToAMatrix) {
  for (const auto& entry : fs::directory_iterator("matrices")) {
    const std::string name = entry.path().filename().string();
    if (!absl::EndsWith(name, ".expect.txt")) continue;
    const absl::Status status = Expectations::Read(entry.path()).status();
    EXPECT_TRUE(status.ok()) << status;
    const std::string matrix = name.substr(0, name.find('.'));
    EXPECT_TRUE(fs::exists(fs::path("matrices") / (matrix + ".json"))) << name;
    EXPECT_EQ(Expectations::FileOf("matrices/" + matrix + ".json"), "matrices/" + name);
  }
}

using BadMatrixTest = MatrixFilesTest;
TEST_P(BadMatrixTest, IsRefusedWithItsMessage) {
  fs::path message_file = GetParam();
  message_file.replace_extension(".message");
  const std::string wanted = std::string(absl::StripSuffix(*ReadFile(message_file), "\n"));
  EXPECT_EQ(std::string(ReadMatrix(GetParam()).status().message()),
            GetParam().string() + ": " + wanted);
}
TEST_P(BadMatrixTest, IsRefusedByTheSchemaToo) {
  const absl::StatusOr<Json> json = ReadJsonFile(GetParam());
  const bool beyond_schema = absl::StrContains(GetParam().string(), "beyond_schema");
  if (!json.ok()) GTEST_SKIP() << "not JSON: there is nothing for a schema to judge";
  EXPECT_EQ(SchemaAccepts(*json), beyond_schema);
}
INSTANTIATE_TEST_SUITE_P(Fixtures, BadMatrixTest,
                         ::testing::ValuesIn(FilesIn("fixtures/matrices", "bad_")), NameOf);

}  // namespace
}  // namespace bkm
