// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "harness/base/shape_check.h"

namespace bkm {

struct Wheel {
  double radius = 0;
  std::vector<int64_t> spokes;
  bool operator==(const Wheel&) const = default;
};

enum class Color { kRed, kBlue };

struct Bicycle {
  std::string name;
  Color color = Color::kRed;
  int gears = 1;
  bool lit = true;
  std::optional<std::string> owner;
  std::optional<Wheel> spare;
  std::vector<Wheel> wheels;
  std::map<std::string, int> bags;
  std::vector<std::string> stickers;
  std::optional<double> price;
  bool operator==(const Bicycle&) const = default;
};

void Describe(Fields& fields, Wheel& wheel) {
  fields.Field("radius", wheel.radius);
  fields.Field("spokes", wheel.spokes, Presence::kOptional);
}

void Describe(Fields& fields, Bicycle& bicycle) {
  constexpr std::array<absl::string_view, 2> kColors = {"red", "blue"};
  fields.Field("name", bicycle.name);
  fields.Name("color", bicycle.color, kColors);
  fields.Int("gears", bicycle.gears, 1, 30, Presence::kOptional);
  fields.Group("lamp", [&](Fields& lamp) { lamp.Field("lit", bicycle.lit, Presence::kOptional); });
  fields.Field("owner", bicycle.owner, Presence::kOptional);
  fields.Field("spare", bicycle.spare, Presence::kOptional);
  fields.Field("wheels", bicycle.wheels, Presence::kOptional);
  fields.Derived("wheel_count", bicycle.wheels.size());
  fields.Field("bags", bicycle.bags, Presence::kOmitted);
  fields.Field("stickers", bicycle.stickers, Presence::kOmitted);
  fields.Field("price", bicycle.price, Presence::kOmitted);
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kLine[] =
    R"({"name":"b","color":"blue","gears":3,"lamp":{"lit":false},"owner":null,)"
    R"("spare":{"radius":1.5,"spokes":[1,2]},"wheels":[{"radius":2.0,"spokes":[]}],)"
    R"("wheel_count":1,"bags":{"left":2}})";

Bicycle Example() {
  return {.name = "b",
          .color = Color::kBlue,
          .gears = 3,
          .lit = false,
          .spare = Wheel{1.5, {1, 2}},
          .wheels = {{2.0, {}}},
          .bags = {{"left", 2}}};
}

absl::StatusOr<Bicycle> ReadText(const char* text, FieldStyle style = FieldStyle::kStrict) {
  return ReadFields<Bicycle>(*ParseJson(text, "b.json"), "b.json", style);
}
std::string ErrorOf(const char* text, FieldStyle style = FieldStyle::kStrict) {
  return std::string(ReadText(text, style).status().message());
}

TEST(FieldsTest, OneDescriptionWritesAndReads) {
  EXPECT_EQ(WriteFields(Example()).dump(), kLine);
  EXPECT_EQ(*ReadText(kLine), Example());
}

TEST(FieldsTest, OptionalKeysMayBeMissing) {
  EXPECT_EQ(*ReadText(R"({"name": "b", "color": "red", "lamp": {}})"), Bicycle{.name = "b"});
}

TEST(FieldsTest, ErrorsNameThePath) {
  EXPECT_EQ(ErrorOf("[]"), "b.json: $: an object is needed here, not array");
  EXPECT_EQ(ErrorOf(R"({"color": "red"})"), "b.json: $: the key 'name' is missing");
  EXPECT_EQ(ErrorOf(R"({"name": 1})"), "b.json: $.name: a string is needed here, not number");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "rde"})"),
            "b.json: $.color: unknown name 'rde': did you mean 'red'?");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "red", "gears": 31})"),
            "b.json: $.gears: 31 is out of range: 1 to 30");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "red", "lamp": {}, "wheels": [{"radius": 1},
                       {"radius": 1, "spokes": [1, 2.5]}]})"),
            "b.json: $.wheels[1].spokes[1]: a whole number is needed here, not number");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "red", "lamp": {}, "spare": {}})"),
            "b.json: $.spare: the key 'radius' is missing");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "red", "lamp": {"lti": true}})"),
            "b.json: $.lamp: unknown key 'lti': did you mean 'lit'?");
  EXPECT_EQ(ErrorOf(R"({"name": "b", "color": "red", "lamp": {}, "bags": {"left": "2"}})"),
            "b.json: $.bags.left: a whole number is needed here, not string");
}

TEST(FieldsTest, SparseReadingTakesNullForMissingAndIgnoresUnknownKeys) {
  const Bicycle bicycle = *ReadText(
      R"({"bell": 1, "name": null, "gears": 2, "spare": {"radius": null, "spokes": null}})",
      FieldStyle::kSparse);
  EXPECT_EQ(bicycle.name, "");
  EXPECT_EQ(bicycle.gears, 2);
  EXPECT_TRUE(std::isnan(bicycle.spare->radius));
  EXPECT_THAT(bicycle.spare->spokes, IsEmpty());
  EXPECT_EQ(ErrorOf(R"({"color": "rde"})", FieldStyle::kSparse),
            "b.json: $.color: unknown name 'rde'");
  EXPECT_EQ(ErrorOf(R"({"wheels": [{}, {"radius": "1"}]})", FieldStyle::kSparse),
            "b.json: $.wheels[1].radius: a number is needed here, not string");
}

TEST(FieldsDeathTest, AnEnumeratorWithoutANameIsABug) {
  EXPECT_DEATH(WriteFields(Bicycle{.name = "b", .color = static_cast<Color>(9)}),
               "color has no name");
}

TEST(FieldsTest, SparseWritingLeavesEmptyFieldsOut) {
  EXPECT_EQ(WriteFields(Bicycle(), FieldStyle::kSparse).dump(),
            R"({"color":"red","gears":1,"lamp":{"lit":true}})");
}

constexpr char kSchema[] = R"({
  "type": "object", "additionalProperties": false,
  "required": ["name", "color", "gears", "lamp", "owner", "spare", "wheels", "wheel_count"],
  "properties": {
    "name": {"type": "string", "pattern": "^[a-z]+$"},
    "color": {"enum": ["red", "blue"]},
    "gears": {"type": "integer", "minimum": 1},
    "lamp": {"type": "object", "additionalProperties": false, "required": ["lit"],
             "properties": {"lit": {"type": "boolean"}}},
    "owner": {"type": ["string", "null"]},
    "spare": {"oneOf": [{"$ref": "#/definitions/wheel"}, {"type": "null"}]},
    "wheels": {"type": "array", "items": {"$ref": "#/definitions/wheel"}},
    "wheel_count": {"type": "integer"},
    "bags": {"type": "object"},
    "stickers": {"type": "array", "items": {"type": "string"}},
    "price": {"type": "number"}
  },
  "definitions": {
    "wheel": {"type": "object", "additionalProperties": false, "required": ["radius", "spokes"],
              "properties": {"radius": {"type": "number"},
                             "spokes": {"type": "array", "items": {"type": "integer"}}}}
  }
})";

TEST(SchemaDifferencesTest, ASchemaThatAgreesHasNone) {
  EXPECT_THAT(SchemaDifferences<Bicycle>(*ParseJson(kSchema, "s")), IsEmpty());
}

TEST(SchemaDifferencesTest, EachDifferenceHasItsPath) {
  const auto differences = [](const char* pointer, const Json& value) {
    Json schema = *ParseJson(kSchema, "s");
    schema[Json::json_pointer(pointer)] = value;
    return SchemaDifferences<Bicycle>(schema);
  };
  EXPECT_THAT(differences("/properties/bell", {{"type", "string"}}),
              ElementsAre("$: its properties are {bags, bell, color, gears, lamp, name, owner, "
                          "price, spare, stickers, wheel_count, wheels}, not {bags, color, gears, "
                          "lamp, name, owner, price, spare, stickers, wheel_count, wheels}"));
  EXPECT_THAT(differences("/definitions/wheel/required", {"radius"}),
              ElementsAre("$.spare: its required keys are {radius}, not {radius, spokes}",
                          "$.wheels[]: its required keys are {radius}, not {radius, spokes}"));
  EXPECT_THAT(differences("/properties/color/enum", {"red"}),
              ElementsAre("$.color: its names are {red}, not {blue, red}"));
  EXPECT_THAT(differences("/properties/owner/type", "string"),
              ElementsAre("$.owner: its types are {string}, not {null, string}"));
  EXPECT_THAT(differences("/properties/gears/minimum", 0),
              ElementsAre("$.gears: its minimum is 0, not 1"));
  EXPECT_THAT(differences("/properties/lamp/additionalProperties", true),
              ElementsAre("$.lamp: it lacks \"additionalProperties\": false"));
}

}  // namespace
}  // namespace bkm
