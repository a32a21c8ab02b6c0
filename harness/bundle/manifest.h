// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_MANIFEST_H_
#define HARNESS_BUNDLE_MANIFEST_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/matrix/matrix.h"
#include "harness/model/cell_record.h"
#include "harness/runtime/runtime_lock.h"

// The JSON documents of a bundle and of its results (README.md). All come from elsewhere: they are
// read strictly, and what names a path or a program's argument is checked here.
namespace bkm {

// One file, link or empty folder of a source tree, named and identified as in a TreeListing.
struct PackedFile {
  std::string path;
  std::string id;
  std::string part;  // the content, or a link's target; empty for a folder
};
struct PackedTree {
  std::vector<PackedFile> files;
};
void Describe(Fields& fields, PackedFile& file);
void Describe(Fields& fields, PackedTree& tree);

// What a cell needs of a subject.
struct PackedSubject {
  std::string package;  // import name
  std::string content;  // Subject::content
  std::string tree;     // part of a PackedTree; empty: a package of the runtime
  std::string home;     // where the tree lies among the cached trees; empty: elsewhere
  bool listed = false;  // whether the request's key contains the listing of the tree
};
void Describe(Fields& fields, PackedSubject& subject);

struct PackedCell {
  CellRecord record;  // as planned, with its lock
  std::optional<PackedSubject> engine;
  std::optional<PackedSubject> library;
  std::string probe;  // name of the probe's folder; empty: the cell needs none
  Json stopped;       // the observation of a cell that must not run, or null
};
void Describe(Fields& fields, PackedCell& cell);

// A whole bundle.
struct BundleManifest {
  std::string bkm;  // version that packed it
  std::string matrix;
  std::string cell_code;  // Installation::CellCodeDigest of the packing machine
  CellLimits limits;
  std::map<std::string, std::string> locks;   // key -> part of a RuntimeLock
  std::map<std::string, std::string> probes;  // folder -> part: the checksums of its files
  std::vector<PackedCell> cells;
};
void Describe(Fields& fields, BundleManifest& manifest);

// The evidence of one cell. Its name in the results is "result/" and the request's key.
struct ResultFile {
  std::string path;  // "observation.json", "tensors/step0.safetensors"
  std::string part;
};
struct CellResult {
  std::string cell;      // id in the manifest
  bool control = false;  // the control of that cell
  std::string lock;      // part of the RuntimeLock that it ran in; empty: it did not run
  std::string machine;   // part of a WorkMachine
  std::vector<ResultFile> files;
};
void Describe(Fields& fields, ResultFile& file);
void Describe(Fields& fields, CellResult& result);

// A cell that the machine could not run.
struct SkippedCell {
  std::string cell;  // id in the manifest
  std::string why;
};
struct SkippedCells {
  std::vector<SkippedCell> cells;
};
void Describe(Fields& fields, SkippedCell& cell);
void Describe(Fields& fields, SkippedCells& cells);
// "cannot run CELL and 3 other cells: WHY" for each reason, in the order of their first cells.
std::vector<std::string> SkippedTexts(const SkippedCells& cells);

// The documents as they are written: an object with "schema" 1.
template <typename T>
std::string DocumentText(const T& document) {
  OrderedJson json = {{"schema", 1}};
  json.update(WriteFields(document));
  return ToText(json);
}
// The object without "schema". InvalidArgument: no JSON object, or of another schema.
absl::StatusOr<Json> ParseDocument(absl::string_view text, const std::string& origin);
template <typename T>
absl::StatusOr<T> ReadDocument(absl::string_view text, const std::string& origin) {
  const absl::StatusOr<Json> json = ParseDocument(text, origin);
  if (!json.ok()) return json.status();
  return ReadFields<T>(*json, origin);
}

// ReadDocument and what types do not say: an id is the one that follows from its cell, a folder is
// directly below "cells", no cell occurs twice, every lock, probe and part has a proper name.
absl::StatusOr<BundleManifest> ReadManifest(absl::string_view text, const std::string& origin);
// Whether every cell is one that a bundle may have: asked for by a plan. Cells that travel one by
// one, to a node of a cluster, may also be controls and repeats.
absl::Status CheckAsBundle(const BundleManifest& manifest, const std::string& origin);
// Also checks that every path stays in the tree, that none occurs twice or below a file, and the
// bounds of a tree.
absl::StatusOr<PackedTree> ReadPackedTree(absl::string_view text, const std::string& origin);
// Whether a file in a cell's folder of tensors may have this name.
bool IsEvidenceName(absl::string_view name);
// Also checks that the files are those that a cell's folder may have.
absl::StatusOr<CellResult> ReadCellResult(absl::string_view text, const std::string& origin);
// Also checks that names, versions and hashes are nothing else, where an installer reads them.
absl::StatusOr<RuntimeLock> ReadPackedLock(absl::string_view text, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_MANIFEST_H_
