// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The parser and the schema accept every committed matrix. Every bad one is refused with the
// message in the file beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/generated_file.h"
#include "harness/base/shape_check.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/matrix/testing_plan.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/report/expectations.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = "matrices/matrix.schema.json";
constexpr char kReadme[] = "matrices/README.md";
constexpr char kTarget[] = "//harness/matrix:matrix_test";

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
  static bool SchemaAccepts(const Json& json) { return bkm::SchemaAccepts(kSchema, json); }
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

// The JSON schema of what Fields describe.
OrderedJson SchemaOf(const OrderedJson& shape) {
  OrderedJson schema = shape;
  schema.erase("written");
  schema.erase("required");
  if (!shape.contains("properties")) return schema;
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  for (auto& property : schema["properties"]) property = SchemaOf(property);
  return schema;
}

// A value, or a list of values.
OrderedJson AxisOf(OrderedJson value) {
  OrderedJson list = {{"type", "array"}, {"minItems", 1}, {"items", value}};
  return {{"oneOf", {std::move(value), std::move(list)}}};
}

std::vector<std::string> AllAttentions() {
  std::vector<std::string> names;
  for (const EngineKind& kind : EngineKinds()) {
    for (const std::string& name : kind.attentions) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// The properties of `probe` in a matrix: those of the table of dimensions.
OrderedJson ProbeProperties() {
  Fields::Shape shape;
  Probe probe;
  Fields fields(shape);
  Describe(fields, probe);
  OrderedJson properties;
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.field == nullptr) continue;
    OrderedJson value = SchemaOf(shape.json["properties"][dimension.field]);
    value.merge_patch(OrderedJson::parse(dimension.schema));
    if (dimension.name == absl::string_view("attention")) value["enum"] = AllAttentions();
    OrderedJson property = {{"description", dimension.help}};
    const bool is_list = dimension.name == absl::string_view("options");
    property.update(is_list             ? OrderedJson(AxisOf(value)["oneOf"][1])
                    : dimension.is_axis ? AxisOf(value)
                                        : value);
    properties[dimension.field] = std::move(property);
  }
  properties["ranks"] = SchemaOf(shape.json["properties"]["ranks"]);  // follows from a layout
  return properties;
}

OrderedJson ExclusionProperties() {
  OrderedJson properties = {{"why", {{"type", "string"}}}};
  for (const Dimension& dimension : Dimensions()) properties[dimension.name] = {{"type", "string"}};
  return properties;
}

// What people write by hand in the schema, with what the tables say.
TEST(MatrixSchemaTest, SaysOfAProbeWhatTheTableOfDimensionsSays) {
  const absl::StatusOr<std::string> text = ReadFile(kSchema);
  ASSERT_TRUE(text.ok()) << text.status();
  OrderedJson schema = OrderedJson::parse(*text);
  OrderedJson& definitions = schema["definitions"];
  definitions["probe"]["properties"] = ProbeProperties();
  definitions["exclusion"]["properties"] = ExclusionProperties();
  definitions["group"]["properties"]["engine"]["properties"]["kind"]["enum"] = EngineKindNames();
  const std::string expected = schema.dump(2) + "\n";
  ExpectGenerated(kSchema, *text, expected, kTarget);
}

// The table of what a cell can be asked, as Markdown.
std::string DimensionTable() {
  std::string table =
      "| in a matrix | flag | what it asks for | of rows without it, `not tested` says "
      "|\n|---|---|---|---|\n";
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.field == nullptr) continue;
    const std::string flag =
        dimension.flag_form == FlagForm::kNone ? "" : absl::StrCat("`", dimension.Flag(), "`");
    std::vector<std::string> words;
    for (const AskedAspect& aspect : dimension.aspects) words.push_back(aspect.words);
    absl::StrAppend(&table, "| `", dimension.field, "` | ", flag, " | ", dimension.help, " | ",
                    absl::StrJoin(words, "; "), " |\n");
  }
  return table;
}

TEST(MatrixReadmeTest, HasTheTableOfWhatACellCanBeAsked) {
  const absl::StatusOr<std::string> text = ReadFile(kReadme);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string table = DimensionTable();
  const size_t start = text->find(table.substr(0, table.find('\n')));
  ASSERT_NE(start, std::string::npos) << kReadme << " lacks the head of the table";
  const size_t end = text->find("\n\n", start);
  const std::string expected = text->substr(0, start) + table + text->substr(end + 1);
  ExpectGenerated(kReadme, *text, expected, kTarget);
}

TEST(MatrixSchemaTest, NamesTheFieldsOfLimits) {
  const Json schema = *ReadJsonFile(kSchema);
  EXPECT_THAT(SchemaDifferences<CellLimits>(schema["properties"]["limits"], SchemaSide::kReader),
              ::testing::IsEmpty());
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
