// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_LABELS_H_
#define HARNESS_REPORT_LABELS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "harness/model/cell_record.h"

namespace bkm {

// "0.9.1", "v0.8.0 (7aed6b230, 2026-06-01)", "baba6d82e (2026-06-04)": what a person calls a
// version, and how to find it.
std::string VersionText(const std::string& label, const std::optional<SubjectSpec>& subject,
                        const std::string& date);

// The library of a cell: its version, or for a library inside the runtime what that resolved to.
std::string LibraryText(const CellRecord& record);

// What else is asked beside attention and precision: "input=padded, micro_batches=2,
// activation_checkpoint=none"; empty for the defaults. Steps and seeds are not told.
std::string OptionsText(const Cell& cell);

// "verl-torchtitan v0.8.0 x torchtitan baba6d82e, flex, bf16": one cell on one line.
std::string CellLabel(const CellRecord& record);

// A verdict's message without where in the code it was raised: the same cause stands on other lines
// of other versions.
absl::string_view MessageWithoutPlace(absl::string_view message);

// `text` without what would steer a terminal: subjects write what they like. Line ends are kept.
std::string Printable(std::string text);

}  // namespace bkm

#endif  // HARNESS_REPORT_LABELS_H_
