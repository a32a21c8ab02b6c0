// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_difference.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 7> kFaultNames = {
    "other-document", "future", "boundary", "window", "too-wide", "short", "none"};

// The width of the window if only the window is wrong; 0 means no window.
std::optional<int64_t> WindowOf(const Relation& seen, const PackedDocuments& documents) {
  int64_t width = 0;
  for (int64_t d = 0; d < documents.count(); ++d) {
    for (int64_t query = documents.begin(d); query < documents.end(d); ++query) {
      for (int64_t key = documents.begin(d); key <= query && query - key >= width; ++key) {
        if (seen.Sees(query, key)) width = query - key + 1;
      }
    }
  }
  if (width == 0 || seen != RightRelation(documents, width)) return std::nullopt;
  return width >= documents.longest() ? 0 : width;
}

// Whether the relation is right for documents whose boundaries moved by at most one token. Shifted
// document ids wrap around, so the first and the last token are not compared.
bool IsShifted(const Relation& seen, const PackedDocuments& documents, int64_t window) {
  const int64_t tokens = documents.tokens();
  std::vector<int64_t> lengths;
  int64_t last = 0;
  bool is_moved = false;
  for (int64_t d = 1; d < documents.count(); ++d) {
    int64_t begin = documents.begin(d);
    if (seen.Sees(begin, begin - 1)) {
      if (begin + 1 < tokens && !seen.Sees(begin + 1, begin))
        ++begin;
      else if (begin >= 2 && !seen.Sees(begin - 1, begin - 2))
        --begin;
      else
        return false;
      is_moved = true;
    }
    if (begin <= last) return false;
    lengths.push_back(begin - last);
    last = begin;
  }
  if (!is_moved) return false;
  lengths.push_back(tokens - last);
  const Relation shifted = RightRelation(PackedDocuments(lengths), window);
  for (int64_t query = 1; query + 1 < tokens; ++query) {
    for (int64_t key = 1; key + 1 < tokens; ++key) {
      if (seen.Sees(query, key) != shifted.Sees(query, key)) return false;
    }
  }
  return true;
}

MaskFault FaultOf(int64_t query, int64_t key, bool is_extra, const PackedDocuments& documents) {
  if (!is_extra) return MaskFault::kShort;
  if (documents.DocumentOf(query) != documents.DocumentOf(key)) return MaskFault::kOtherDocument;
  return key > query ? MaskFault::kFuture : MaskFault::kTooWide;
}

// Counts the pairs that differ and keeps the most serious fault with its first pair.
void CompareContents(const Relation& seen, const Relation& right, const PackedDocuments& documents,
                     MaskDifference& difference) {
  std::set<std::pair<int64_t, int64_t>> seen_documents;  // (of the query, of the key)
  for (int64_t query = 0; query < seen.tokens(); ++query) {
    for (int64_t key = seen.tokens() - 1; key >= 0; --key) {
      const bool is_extra = seen.Sees(query, key);
      if (is_extra == right.Sees(query, key)) continue;
      ++(is_extra ? difference.extra : difference.missing);
      const MaskFault fault = FaultOf(query, key, is_extra, documents);
      if (fault == MaskFault::kOtherDocument)
        seen_documents.emplace(documents.DocumentOf(query), documents.DocumentOf(key));
      if (fault >= difference.fault) continue;
      difference.fault = fault;
      difference.example = absl::StrCat(documents.Say(query),
                                        is_extra ? " sees " : " does not see ", documents.Say(key));
    }
  }
  difference.is_mutual = std::ranges::any_of(seen_documents, [&](const auto& pair) {
    return seen_documents.contains({pair.second, pair.first});
  });
}

}  // namespace

absl::string_view Name(MaskFault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

MaskDifference Compare(const Relation& seen, const PackedDocuments& documents, int64_t window) {
  MaskDifference difference;
  CompareContents(seen, RightRelation(documents, window), documents, difference);
  if (difference.fault == MaskFault::kNone) return difference;
  if (const std::optional<int64_t> width = WindowOf(seen, documents)) {
    difference.fault = MaskFault::kWindow;
    difference.window = *width;
  } else if (IsShifted(seen, documents, window)) {
    difference.fault = MaskFault::kBoundary;
  }
  return difference;
}

std::vector<std::string> Picture(const Relation& seen, const PackedDocuments& documents) {
  const Relation causal = RightRelation(documents, 0);
  std::vector<std::string> lines;
  for (int64_t row = 0; row < documents.count(); ++row) {
    std::string& line = lines.emplace_back();
    for (int64_t column = 0; column < documents.count(); ++column) {
      bool is_causal = row == column, none = true, all = true;
      for (int64_t query = documents.begin(row); query < documents.end(row); ++query) {
        for (int64_t key = documents.begin(column); key < documents.end(column); ++key) {
          const bool sees = seen.Sees(query, key);
          (sees ? none : all) = false;
          is_causal = is_causal && sees == causal.Sees(query, key);
        }
      }
      line += none ? '.' : is_causal ? '\\' : all ? '#' : '+';
    }
  }
  return lines;
}

}  // namespace bkm
