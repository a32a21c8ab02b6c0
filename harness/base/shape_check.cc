// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/shape_check.h"

#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

using Names = std::set<std::string>;

Names Keys(const Json& object) {
  Names keys;
  for (const auto& member : object.items()) keys.insert(member.key());
  return keys;
}

class Comparison {
 public:
  Comparison(const Json& schema, SchemaSide side)
      : root_(schema), required_(side == SchemaSide::kWriter ? "written" : "required") {}

  void Compare(const Json& shape, const Json& node, const std::string& path) {
    if (shape.empty()) return;  // any JSON
    Expect(TypesOf(shape), Alternatives(node).types, path, "types");
    for (const Json* schema : Alternatives(node).schemas) {
      if (shape.contains("enum") && schema->contains("enum")) {
        Expect(shape["enum"].get<Names>(), (*schema)["enum"].get<Names>(), path, "names");
      } else if (shape.contains("properties") && schema->contains("properties")) {
        CompareObject(shape, *schema, path);
      } else if (shape.contains("items") && schema->contains("items")) {
        Compare(shape["items"], (*schema)["items"], path + "[]");
      }
      for (const char* bound : {"minimum", "maximum"}) {
        if (shape.contains(bound) && schema->contains(bound) && shape[bound] != (*schema)[bound])
          Add(path, absl::StrCat("its ", bound, " is ", (*schema)[bound].dump(), ", not ",
                                 shape[bound].dump()));
      }
    }
  }

  std::vector<std::string> Take() { return std::move(differences_); }

 private:
  struct Flat {
    Names types;
    std::vector<const Json*> schemas;  // without $ref and oneOf
  };

  // Every schema that a value of `node` may have.
  Flat Alternatives(const Json& node) const {
    if (node.contains("$ref")) {
      const std::string pointer = node["$ref"].get<std::string>();
      return Alternatives(root_.at(Json::json_pointer(pointer.substr(1))));
    }
    Flat flat;
    if (node.contains("oneOf")) {
      for (const Json& one : node["oneOf"]) {
        const Flat inner = Alternatives(one);
        flat.types.insert(inner.types.begin(), inner.types.end());
        flat.schemas.insert(flat.schemas.end(), inner.schemas.begin(), inner.schemas.end());
      }
      return flat;
    }
    flat.schemas.push_back(&node);
    if (node.contains("const")) {
      flat.types.insert(node["const"].is_number_integer() ? "integer" : node["const"].type_name());
    } else if (node.contains("enum")) {
      flat.types.insert("string");
    } else if (node.contains("type") && node["type"].is_array()) {
      flat.types = node["type"].get<Names>();
    } else if (node.contains("type")) {
      flat.types.insert(node["type"].get<std::string>());
    }
    return flat;
  }

  static Names TypesOf(const Json& shape) {
    Names types;
    if (shape.contains("enum")) types.insert("string");
    if (shape.contains("properties")) types.insert("object");
    if (shape.contains("type")) types.insert(shape["type"].get<std::string>());
    if (shape.contains("nullable")) types.insert("null");
    return types;
  }

  void CompareObject(const Json& shape, const Json& schema, const std::string& path) {
    const Json& properties = schema["properties"];
    Expect(Keys(shape["properties"]), Keys(properties), path, "properties");
    Expect(shape.value(required_, Names()), schema.value("required", Names()), path,
           "required keys");
    if (schema.value("additionalProperties", Json()) != Json(false))
      Add(path, "it lacks \"additionalProperties\": false");
    for (const auto& [key, member] : shape["properties"].items()) {
      if (properties.contains(key)) Compare(member, properties[key], absl::StrCat(path, ".", key));
    }
  }

  void Expect(const Names& described, const Names& found, const std::string& path,
              const char* what) {
    if (described != found)
      Add(path, absl::StrCat("its ", what, " are {", absl::StrJoin(found, ", "), "}, not {",
                             absl::StrJoin(described, ", "), "}"));
  }

  void Add(const std::string& path, const std::string& what) {
    differences_.push_back(absl::StrCat(path, ": ", what));
  }

  const Json& root_;
  const char* required_;
  std::vector<std::string> differences_;
};

}  // namespace

bool SchemaAccepts(const std::filesystem::path& schema, const Json& json) {
  const Json text = *ReadJsonFile(schema);
  valijson::Schema parsed;
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(text), parsed);
  return valijson::Validator().validate(parsed, valijson::adapters::NlohmannJsonAdapter(json),
                                        nullptr);
}

std::vector<std::string> SchemaDifferences(const Fields::Shape& shape, const Json& schema,
                                           SchemaSide side) {
  Comparison comparison(schema, side);
  comparison.Compare(Json(shape.json), schema, "$");
  return comparison.Take();
}

}  // namespace bkm
