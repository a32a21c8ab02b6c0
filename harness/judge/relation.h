// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_RELATION_H_
#define HARNESS_JUDGE_RELATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// The document boundaries of a packed batch.
class PackedDocuments {
 public:
  explicit PackedDocuments(std::span<const int64_t> lengths);

  int64_t tokens() const { return bounds_.back(); }
  int64_t count() const { return static_cast<int64_t>(bounds_.size()) - 1; }
  int64_t begin(int64_t document) const { return bounds_[document]; }
  int64_t end(int64_t document) const { return bounds_[document + 1]; }
  int64_t longest() const;
  // -1 if the token is outside the batch.
  int64_t DocumentOf(int64_t token) const;
  // "token 41 (document 2, position 4)"
  std::string Say(int64_t token) const;

 private:
  std::vector<int64_t> bounds_;  // 0, then the end of each document
};

// Which query attends to which key, over one packed batch.
class Relation {
 public:
  explicit Relation(int64_t tokens) : tokens_(tokens), seen_(tokens * tokens) {}
  // `bytes` has tokens * tokens elements, one row per query; 0 means not seen.
  Relation(int64_t tokens, std::span<const char> bytes);

  int64_t tokens() const { return tokens_; }
  bool Sees(int64_t query, int64_t key) const { return seen_[query * tokens_ + key] != 0; }
  void Set(int64_t query, int64_t key, bool sees) { seen_[query * tokens_ + key] = sees; }
  bool operator==(const Relation&) const = default;

 private:
  int64_t tokens_;
  std::vector<uint8_t> seen_;
};

// The right relation: a query sees its own document up to itself; with a window (tokens, 0: none)
// only itself and the window - 1 tokens before it.
Relation RightRelation(const PackedDocuments& documents, int64_t window);

// By digest.
using Relations = std::map<std::string, Relation>;

// Reads a cell's tensors/attended.safetensors: relations of `tokens` tokens.
absl::StatusOr<Relations> ReadRelations(const std::filesystem::path& cell_dir, int64_t tokens);
// Reads those of a training step out of the step's file.
absl::StatusOr<Relations> ReadStepRelations(const std::filesystem::path& cell_dir,
                                            const std::string& file, int64_t tokens);

}  // namespace bkm

#endif  // HARNESS_JUDGE_RELATION_H_
