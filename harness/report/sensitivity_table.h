// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_SENSITIVITY_TABLE_H_
#define HARNESS_REPORT_SENSITIVITY_TABLE_H_

#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/judge/sensitivity.h"

namespace bkm {

// The references of some cells of a run that report in the same types, and what they can still tell
// from right.
struct SensitivityRow {
  std::string model;
  std::string precision;
  ReportTypes types;
  std::string options;  // OptionsText of the cell with the fewest: others differ in what references
                        // do not depend on
  int cells = 0;
  Sensitivity sensitivity;
};

// For people: the smallest errors that are reported, and how many tensors' gradients are blind.
std::string SensitivityText(const std::vector<SensitivityRow>& rows);
// An array. An error that nothing compares is null.
Json SensitivityJson(const std::vector<SensitivityRow>& rows);

}  // namespace bkm

#endif  // HARNESS_REPORT_SENSITIVITY_TABLE_H_
