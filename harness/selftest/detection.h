// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_DETECTION_H_
#define HARNESS_SELFTEST_DETECTION_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "harness/model/cell_record.h"
#include "harness/selftest/catalogue.h"

namespace bkm {

// The least distance of a numeric fault, in floors: four times what a right cell may have (k = 4),
// so that neither a larger ensemble nor another machine hides the fault.
inline constexpr double kLeastMargin = 16;

enum class DetectionOutcome {
  kAsExpected,   // the fault was caught as listed, or a cell that must be `ok` is
  kEscaped,      // the cell is `ok` although it has a fault
  kStale,        // red although the catalogue says that no check can see the fault
  kWrongReason,  // red, but not for a listed reason
  kWeak,         // caught, but by less than kLeastMargin
  kFalseRed,     // red without a fault
  kUnmeasured,   // interrupted, spurious, or the fault could not be planted
};

// The result of one cell of a self-test.
struct Detection {
  std::string fault;  // empty: fault-free
  std::string engine;
  std::string attention;
  std::string model;
  std::string drive;
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string check;             // the judge's check that failed
  std::optional<double> margin;  // numeric faults: floors of the worst quantity that may catch it
  std::string message;
  std::string limit;  // "invisible" or "thin", where the catalogue says so, and why
  std::string why;
  DetectionOutcome outcome = DetectionOutcome::kUnmeasured;
};

absl::string_view Name(DetectionOutcome outcome);

// `fault` is null for a fault-free cell.
Detection Assess(const CatalogueFault* fault, const CellRecord& cell);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_DETECTION_H_
