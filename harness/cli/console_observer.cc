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
  return cell.role == CellRole::kRepeat ? absl::StrCat(" (run ", cell.cell.repeat, ")") : "";
}

std::string VerdictLine(const CellRecord& cell, bool reused) {
  std::string line = cell.verdict ? std::string(Name(cell.verdict->kind)) : "measured";
  line.resize(std::max<size_t>(line.size(), 9), ' ');
  absl::StrAppend(&line, CellLabel(cell), RoleText(cell));
  if (IsRed(cell))
    absl::StrAppend(&line, ": ", Name(cell.verdict->stage), ": ", cell.verdict->message);
  absl::StrAppend(&line, reused ? " (reused)" : absl::StrFormat(" (%.1f s)", cell.seconds));
  return line;
}

std::string TimeLeft(double seconds) {
  return seconds < 120 ? absl::StrFormat(", about %.0f s left", seconds)
                       : absl::StrFormat(", about %.0f min left", seconds / 60);
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

void ConsoleObserver::DrawStatus() {
  if (quiet_ || !terminal_ || total_ == 0) return;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const int measured = done_ - reused_;
  std::string eta = "";
  if (measured > 0) eta = TimeLeft(elapsed / measured * (total_ - done_));
  EraseLine();
  PrintErrorf("[%d/%d] %d running, %d red%s", done_, total_, running_, red_, eta.c_str());
  std::fflush(stderr);
  status_shown_ = true;
}

void ConsoleObserver::OnSetUp(const std::string& what) { PrintLine(what); }

void ConsoleObserver::OnPlanned(int cells) {
  total_ = cells;
  done_ = reused_ = red_ = running_ = 0;
  start_ = std::chrono::steady_clock::now();
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

void ConsoleObserver::OnAdded(const CellRecord& cell, const std::string& why) {
  total_ += cell.role == CellRole::kControl;
  if (!terminal_) PrintLine(absl::StrCat("added    ", CellLabel(cell), ": ", why));
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
