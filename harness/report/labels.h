// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_LABELS_H_
#define HARNESS_REPORT_LABELS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "harness/model/cell_record.h"

namespace bkm {

// A version for people, with its commit and date: "0.9.1", "v0.8.0 (7aed6b230, 2026-06-01)",
// "baba6d82e (2026-06-04)".
std::string VersionText(const std::string& label, const std::optional<SubjectSpec>& subject,
                        const std::string& date);

// The version of a cell's library; the resolved one if the runtime installs the library.
std::string LibraryText(const CellRecord& record);

// The other settings of a cell that are not default: "input=padded, micro_batches=2,
// activation_checkpoint=none". Steps and seeds are left out.
std::string OptionsText(const Cell& cell);
std::string OptionsText(const Probe& probe);

// A cell on one line: "verl-torchtitan v0.8.0 x torchtitan baba6d82e, flex, bf16". It has a seed
// that is not the default one.
std::string CellLabel(const CellRecord& record);

// A verdict's message without its place in the code, which differs between versions for the same
// cause.
absl::string_view MessageWithoutPlace(absl::string_view message);

// ShownText(): subjects write to `text`, and people read it.
std::string Printable(std::string text);

}  // namespace bkm

#endif  // HARNESS_REPORT_LABELS_H_
