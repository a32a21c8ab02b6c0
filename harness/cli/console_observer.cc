// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/console_observer.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/cli/console.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

bool IsRed(const CellRecord& cell) {
  return cell.verdict && cell.verdict->kind != VerdictKind::kOk;
}

std::string RoleText(const CellRecord& cell) {
  if (cell.role == CellRole::kControl) return " (control)";
  if (cell.role == CellRole::kTwin) return " (without an option)";
  return cell.role == CellRole::kRepeat ? absl::StrCat(" (run ", cell.cell.repeat, ")") : "";
}

std::string VerdictLine(const CellRecord& cell, bool reused) {
  std::string line = cell.verdict ? std::string(Name(cell.verdict->kind)) : "measured";
  line.resize(std::max<size_t>(line.size() + 1, 9), ' ');
  absl::StrAppend(&line, CellLabel(cell), RoleText(cell));
  if (IsRed(cell))
    absl::StrAppend(&line, ": ", Name(cell.verdict->stage), ": ", cell.verdict->message);
  absl::StrAppend(&line, reused ? " (reused)" : absl::StrFormat(" (%.1f s)", cell.cost.seconds));
  return line;
}

// What a cell of the published table takes on two cores, its share of the preparation included
// (docs/performance.md): an estimate until cells were measured.
constexpr double kTypicalSeconds = 6;
constexpr int kWeightOfTypical = 4;  // it counts as much as so many measured cells

std::string TimeText(double seconds) {
  return seconds < 120 ? absl::StrFormat("%.0f s", seconds)
                       : absl::StrFormat("%.0f min", seconds / 60);
}

}  // namespace

ConsoleObserver::ConsoleObserver(bool quiet)
    : quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

ConsoleObserver::~ConsoleObserver() { ClearStatus(); }

void ConsoleObserver::ClearStatus() {
  if (status_shown_) EraseLine();
  status_shown_ = false;
}

void ConsoleObserver::PrintLine(const std::string& line) {
  if (quiet_) return;
  ClearStatus();
  PrintErrorf("%s\n", line);
}

std::string ConsoleObserver::TimeLeft() const {
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const int measured = done_ - reused_;
  const double seconds_each =
      (elapsed + kTypicalSeconds * kWeightOfTypical) / (measured + kWeightOfTypical);
  return absl::StrCat(measured < kWeightOfTypical ? "very roughly " : "about ",
                      TimeText(seconds_each * (total_ - done_)));
}

void ConsoleObserver::DrawStatus() {
  if (quiet_ || !terminal_ || total_ == 0) return;
  EraseLine();
  PrintErrorf("[%d/%d] %d running, %d red, %s left", done_, total_, running_, red_,
              TimeLeft().c_str());
  std::fflush(stderr);
  status_shown_ = true;
}

void ConsoleObserver::OnSetUp(const std::string& what) { PrintLine(what); }

void ConsoleObserver::OnPlanned(int cells) {
  total_ = cells;
  done_ = reused_ = red_ = running_ = 0;
  start_ = std::chrono::steady_clock::now();
  if (!terminal_ && cells > 1)
    PrintLine(absl::StrCat(cells, " cells, ", TimeLeft(), " if none of them is known"));
  DrawStatus();
}

void ConsoleObserver::OnStarted(const CellRecord&, int running) {
  running_ = running;
  DrawStatus();
}

void ConsoleObserver::OnFinished(const CellRecord& cell, bool reused) {
  ++done_;
  reused_ += reused;
  red_ += IsRed(cell);
  // On a terminal, the status line counts the green cells.
  if (!terminal_ || IsRed(cell))
    PrintLine(absl::StrFormat("[%d/%d] %s", done_, total_, VerdictLine(cell, reused)));
  DrawStatus();
}

void ConsoleObserver::OnJudged(const CellRecord& cell) {
  red_ += IsRed(cell);
  if (!terminal_ || IsRed(cell))
    PrintLine(absl::StrCat("judged   ", VerdictLine(cell, /*reused=*/false)));
  DrawStatus();
}

void ConsoleObserver::OnAdded(const CellRecord& cell, const std::string& why) {
  ++total_;
  if (!terminal_) PrintLine(absl::StrCat("added    ", CellLabel(cell), ": ", why));
  DrawStatus();
}

void ConsoleObserver::OnAgain(const CellRecord& cell, const std::string& why) {
  if (!terminal_) PrintLine(absl::StrCat("again    ", CellLabel(cell), ": ", why));
  DrawStatus();
}

void ConsoleObserver::OnTick(int running) {
  running_ = running;
  DrawStatus();
}

void ConsoleObserver::OnNote(const std::string& what) {
  ClearStatus();
  PrintErrorf("bkm: %s\n", what);
}

void ConsoleObserver::OnWarning(const std::string& what) { OnNote(what); }

}  // namespace bkm
