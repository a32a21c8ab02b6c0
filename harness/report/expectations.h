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

// How a run differs from its expected failures. Published: never rename.
enum class SurpriseKind {
  kUnlisted,     // fails, and no line lists it
  kOtherReason,  // fails with a verdict, stage or reason that its lines do not list
  kPassing,      // passes, although a line lists it
  kNeverSeen,    // a stale expectation: a line that matches no cell of the run
};
absl::string_view Name(SurpriseKind kind);

struct Surprise {
  SurpriseKind kind = SurpriseKind::kUnlisted;
  const CellRecord* cell = nullptr;  // of the run; null for a stale expectation
  std::string message;               // one sentence that says what to do
};

// The expected failures of a matrix: FILE.expect.txt beside the matrix FILE.json. Each line is
//   FILTER -> VERDICT at STAGE, REASON  # why it fails
// FILTER is as for --filter; stage and reason are optional. Comments and empty lines are kept.
class Expectations {
 public:
  static absl::StatusOr<Expectations> Parse(absl::string_view text, const std::string& origin);
  static absl::StatusOr<Expectations> Read(const std::filesystem::path& path);
  // The file of a matrix file: beside it, with .expect.txt in place of .json.
  static std::filesystem::path FileOf(const std::filesystem::path& matrix);

  // How `run` differs from the lines. Spurious and flaky cells never differ. Lines without a
  // cell are stale only if the run is `whole`, that is, the whole matrix was run.
  std::vector<Surprise> Compare(const RunRecord& run, bool whole) const;

  // The file with which `run`, which must be whole, has no surprise. Comments, order and lines that
  // still hold are kept.
  std::string Rewritten(const RunRecord& run) const;

 private:
  struct Line {
    int number = 0;
    std::string text;                  // as written
    std::optional<CellFilter> filter;  // absent: a comment or an empty line
    std::string verdict, stage, reason;
    std::string why;
    bool Covers(const CellRecord& cell) const;
    bool Agrees(const Verdict& verdict) const;
    std::string Expected() const;
  };
  static absl::StatusOr<Line> ParseLine(absl::string_view text, int number,
                                        const std::string& origin);
  // The first line that covers the cell and agrees with its verdict; else the first that covers it.
  const Line* LineFor(const CellRecord& cell) const;
  std::string Place(const Line& line) const;

  std::string origin_;
  std::vector<Line> lines_;
};

}  // namespace bkm

#endif  // HARNESS_REPORT_EXPECTATIONS_H_
