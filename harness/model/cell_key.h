// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_KEY_H_
#define HARNESS_MODEL_CELL_KEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"
#include "harness/model/cell.h"
#include "harness/model/cell_pattern.h"

namespace bkm {

enum class CellKeyUse {
  kMain,     // ids contain it even with its default value
  kOption,   // ids and reports contain it unless it has its default value
  kDetail,   // ids contain it unless it has its default value
  kDerived,  // ids never contain it: it follows from another field
};

// One field of a cell as ids and filters spell it. Every text is escaped (EscapedText).
struct CellKey {
  const char* name;
  CellKeyUse use;
  std::string (*text)(const Cell&);
  // The value as the user wrote it, where that differs from `text`.
  std::string (*asked)(const Cell&) = nullptr;
  // Further names that a filter matches.
  std::vector<std::string> (*names)(const Cell&) = nullptr;
  // Of a field of the probe: its key in the probe's JSON, and the value there that a text spells.
  const char* field = nullptr;
  Json (*value)(absl::string_view text) = nullptr;
  std::string default_text = {};

  bool IsDefault(const Cell& cell) const { return text(cell) == default_text; }
  bool IsOmitted(const Cell& cell) const {
    return use == CellKeyUse::kDerived || (use != CellKeyUse::kMain && IsDefault(cell));
  }
  std::string AskedText(const Cell& cell) const { return asked ? asked(cell) : text(cell); }
  // Every text that a pattern may match, the id's first.
  std::vector<std::string> Texts(const Cell& cell) const;
  // An empty pattern asks for the default value.
  bool Matches(const CellPattern& pattern, const Cell& cell) const;
};

// All fields in the order of the id: what ids, filters, a matrix's `exclude` and reports know.
const std::vector<CellKey>& CellKeys();

// The probe of the cell with this id, by today's defaults.
absl::StatusOr<Probe> ProbeOfId(absl::string_view id);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_KEY_H_
