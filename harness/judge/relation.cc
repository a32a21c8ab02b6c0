// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/relation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/judge/cell_files.h"

namespace bkm {

PackedDocuments::PackedDocuments(std::span<const int64_t> lengths) : bounds_{0} {
  for (int64_t length : lengths) bounds_.push_back(bounds_.back() + length);
}

int64_t PackedDocuments::longest() const {
  int64_t longest = 0;
  for (int64_t d = 0; d < count(); ++d) longest = std::max(longest, end(d) - begin(d));
  return longest;
}

int64_t PackedDocuments::DocumentOf(int64_t token) const {
  if (token < 0 || token >= tokens()) return -1;
  return std::upper_bound(bounds_.begin(), bounds_.end(), token) - bounds_.begin() - 1;
}

std::string PackedDocuments::Say(int64_t token) const {
  const int64_t document = DocumentOf(token);
  if (document < 0) return absl::StrCat("token ", token, " (outside all documents)");
  return absl::StrCat("token ", token, " (document ", document, ", position ",
                      token - begin(document), ")");
}

Relation::Relation(int64_t tokens, std::span<const char> bytes)
    : tokens_(tokens), seen_(bytes.begin(), bytes.end()) {
  for (uint8_t& seen : seen_) seen = seen != 0;
}

Relation RightRelation(const PackedDocuments& documents, int64_t window) {
  Relation relation(documents.tokens());
  for (int64_t d = 0; d < documents.count(); ++d) {
    for (int64_t query = documents.begin(d); query < documents.end(d); ++query) {
      const int64_t first =
          window > 0 ? std::max(documents.begin(d), query - window + 1) : documents.begin(d);
      for (int64_t key = first; key <= query; ++key) relation.Set(query, key, true);
    }
  }
  return relation;
}

namespace {

// The relations of a file, whose keys are `prefix` and a digest.
absl::StatusOr<Relations> ReadWithPrefix(const std::filesystem::path& cell_dir,
                                         const std::string& name, absl::string_view prefix,
                                         int64_t tokens) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, OpenCellTensors(cell_dir, name));
  Relations relations;
  for (const auto& [key, tensor] : file.tensors()) {
    absl::string_view digest = key;
    if (!absl::ConsumePrefix(&digest, prefix)) continue;
    if (tensor.type != TensorType::kU8 || tensor.shape != std::vector<int64_t>{tokens, tokens}) {
      return absl::DataLossError(absl::StrCat(file.path().string(), ": relation ",
                                              std::string(digest), " is not U8 of ", tokens, " x ",
                                              tokens));
    }
    relations.emplace(std::string(digest),
                      Relation(tokens, std::span(tensor.bytes.data(), tensor.bytes.size())));
  }
  return relations;
}

}  // namespace

absl::StatusOr<Relations> ReadRelations(const std::filesystem::path& cell_dir, int64_t tokens) {
  return ReadWithPrefix(cell_dir, kRelationsFile, "", tokens);
}

absl::StatusOr<Relations> ReadStepRelations(const std::filesystem::path& cell_dir,
                                            const std::string& file, int64_t tokens) {
  return ReadWithPrefix(cell_dir, file, kRelationPrefix, tokens);
}

}  // namespace bkm
