// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_SHAPE_CHECK_H_
#define HARNESS_BASE_SHAPE_CHECK_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/fields.h"

namespace bkm {

// Whether the JSON schema in the file `schema` accepts `json`.
bool SchemaAccepts(const std::filesystem::path& schema, const Json& json);

enum class SchemaSide {
  kWriter,  // of files that the program writes: it requires the keys that are always written
  kReader,  // of files that people write: it requires the keys that reading requires
};

// How a JSON schema differs from the shape of a struct, one sentence each with its path: other
// properties, required keys, types, bounds or names of an enumeration, or a missing
// "additionalProperties": false. What a schema says beyond the shape (patterns, descriptions) is
// not compared.
std::vector<std::string> SchemaDifferences(const Fields::Shape& shape, const Json& schema,
                                           SchemaSide side);

template <typename T>
std::vector<std::string> SchemaDifferences(const Json& schema,
                                           SchemaSide side = SchemaSide::kWriter) {
  Fields::Shape shape;
  T value = {};
  Fields fields(shape);
  Describe(fields, value);
  return SchemaDifferences(shape, schema, side);
}

}  // namespace bkm

#endif  // HARNESS_BASE_SHAPE_CHECK_H_
