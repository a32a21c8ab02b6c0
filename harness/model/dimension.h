// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_DIMENSION_H_
#define HARNESS_MODEL_DIMENSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"
#include "harness/model/cell.h"
#include "harness/model/cell_pattern.h"

namespace bkm {

struct EngineKind;

enum class DimensionUse {
  kMain,     // ids contain it even with its default value
  kOption,   // ids and reports contain it unless it has its default value
  kDetail,   // ids contain it unless it has its default value
  kDerived,  // ids never contain it: it follows from another field
};

// How the command line asks for a dimension.
enum class FlagForm {
  kNone,    // not at all, or by a flag with a syntax of its own (harness/cli/selection.h)
  kValues,  // --name A,B: the product has each value
  kValue,   // --name A
  kSwitch,  // --name: true
};

// Something that a row of the published table was tested with, or was not.
struct AskedAspect {
  std::string words;  // "a warm-up"
  std::function<bool(const Probe& probe)> is_asked;
  std::string engine_option = {};                            // that must be seen to act
  std::function<bool(const EngineKind& kind)> of_kind = {};  // that has it; absent: every kind
};

// One thing that can be asked of a cell. Ids, filters, a matrix's axes and `exclude`, flags, their
// help and completion, the schema of matrices, labels, the question of a control and what a row
// was not tested with come from the table of these. Every text of a value is escaped (EscapedText).
struct Dimension {
  const char* name;  // a key of ids, filters and matrices: never rename
  DimensionUse use;
  std::function<std::string(const Cell&)> text;
  // The value as the user wrote it, where that differs from `text`.
  std::string (*asked)(const Cell&) = nullptr;
  // Further names that a filter matches.
  std::vector<std::string> (*names)(const Cell&) = nullptr;

  // Of a field of the probe: its key in the probe's JSON, and the value there that a text spells,
  // of an id or of the command line.
  const char* field = nullptr;
  absl::StatusOr<Json> (*value)(absl::string_view text) = nullptr;
  // Whether a matrix takes a list of values, each of which is a cell's.
  bool is_axis = true;
  // What the JSON schema of one value says beyond the type, bounds and names that reading checks: a
  // JSON merge patch (RFC 7396).
  const char* schema = "{}";
  // Set for an option that nothing but the cell's Python reads: its value lies in
  // Probe::adapter_options unless it is this one. As JSON text, such as "false".
  const char* adapter_default = nullptr;
  // In requests and records, too, where it has its default: what was recorded before fields were
  // left out stays valid.
  bool is_always_written = false;

  FlagForm flag_form = FlagForm::kNone;
  const char* help = "";

  // The kinds that can be asked for another value than the default, and what the others lack, as
  // the rest of a sentence: "takes packed input only". Absent: every kind can.
  bool (*of_kind)(const EngineKind& kind) = nullptr;
  const char* lacks = "";
  // Makes the question of a control: the default, of what is the engine's own business. Absent: a
  // control is asked the same.
  void (*for_control)(Probe& probe) = nullptr;
  std::vector<AskedAspect> aspects = {};
  std::string default_text = {};  // filled in

  bool IsDefault(const Cell& cell) const { return text(cell) == default_text; }
  bool IsOmitted(const Cell& cell) const {
    return use == DimensionUse::kDerived || (use != DimensionUse::kMain && IsDefault(cell));
  }
  std::string AskedText(const Cell& cell) const { return asked ? asked(cell) : text(cell); }
  // Every text that a pattern may match, the id's first.
  std::vector<std::string> Texts(const Cell& cell) const;
  // An empty pattern asks for the default value.
  bool Matches(const CellPattern& pattern, const Cell& cell) const;
  // "--micro-batches".
  std::string Flag() const;
};

// All of them, in the order of the id.
const std::vector<Dimension>& Dimensions();
// nullptr for an unknown name.
const Dimension* FindDimension(absl::string_view name);

// The probe of the cell with this id, by today's defaults.
absl::StatusOr<Probe> ProbeOfId(absl::string_view id);

// What the control of a cell with this probe is asked.
Probe ProbeOfControl(Probe probe);

}  // namespace bkm

#endif  // HARNESS_MODEL_DIMENSION_H_
