// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_EXPECTATIONS_H_
#define HARNESS_REPORT_EXPECTATIONS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/cell.h"
#include "harness/model/cell_record.h"

namespace bkm {

// How a run differs from what was expected of it. Published: never rename.
enum class SurpriseKind {
  kUnlisted,     // red, and no line says so
  kOtherReason,  // red, and its lines say another verdict, stage or reason
  kPassing,      // ok, and a line says that it is red
  kNeverSeen,    // a line that is about no cell of the run
};
absl::string_view Name(SurpriseKind kind);

struct Surprise {
  SurpriseKind kind = SurpriseKind::kUnlisted;
  const CellRecord* cell = nullptr;  // of the run; null for a line that was never seen
  std::string message;               // one sentence, with what to do
};

// The cells of a matrix that are known to be red: matrices/NAME.expect.txt. One line each,
//   FILTER -> VERDICT at STAGE, REASON  # why, in words
// where FILTER is what --filter takes; stage and reason may be left out. Comments and empty lines
// stand where they like.
class Expectations {
 public:
  static absl::StatusOr<Expectations> Parse(absl::string_view text, const std::string& origin);
  static absl::StatusOr<Expectations> Read(const std::filesystem::path& path);
  // The file that belongs to a matrix file: beside it, .expect.txt in place of .json.
  static std::filesystem::path FileOf(const std::filesystem::path& matrix);

  // What of a run is not as listed. Cells that say nothing, and flaky ones, are no surprise of this
  // kind. `whole`: all of the matrix was run, so that a line without a cell means something.
  std::vector<Surprise> Compare(const RunRecord& run, bool whole) const;

  // The file as it would have to be for `run`, which must be whole, to hold no surprise: comments
  // and order are kept, and lines that still hold as they are.
  std::string Rewritten(const RunRecord& run) const;

 private:
  struct Line {
    int number = 0;
    std::string text;                  // as it stands
    std::optional<CellFilter> filter;  // absent: a comment or an empty line
    std::string verdict, stage, reason;
    std::string why;
    bool Covers(const CellRecord& cell) const;
    bool Agrees(const Verdict& verdict) const;
    std::string Expected() const;
  };
  static absl::StatusOr<Line> ParseLine(absl::string_view text, int number,
                                        const std::string& origin);
  // Of the lines that are about the cell, the first that says what it came to; else the first.
  const Line* LineFor(const CellRecord& cell) const;
  std::string Place(const Line& line) const;

  std::string origin_;
  std::vector<Line> lines_;
};

}  // namespace bkm

#endif  // HARNESS_REPORT_EXPECTATIONS_H_
