// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_CONSOLE_OBSERVER_H_
#define HARNESS_CLI_CONSOLE_OBSERVER_H_

#include <chrono>
#include <string>

#include "harness/runner/observer.h"

namespace bkm {

// Prints a run's progress to stderr. On a terminal: a status line (done/total, running, red, time
// left) below one line per red cell. In a pipe: one line per finished cell.
class ConsoleObserver : public RunObserver {
 public:
  explicit ConsoleObserver(bool quiet);
  ~ConsoleObserver() override;

  void OnSetUp(const std::string& what) override;
  void OnPlanned(int cells) override;
  void OnStarted(const CellRecord& cell, int running) override;
  void OnFinished(const CellRecord& cell, bool reused) override;
  void OnJudged(const CellRecord& cell) override;
  void OnAdded(const CellRecord& cell, const std::string& why) override;
  void OnAgain(const CellRecord& cell, const std::string& why) override;
  void OnTick(int running) override;
  // Printed above the status line, even when quiet.
  void OnNote(const std::string& what) override;
  void OnWarning(const std::string& what) override;

 private:
  void PrintLine(const std::string& line);
  // From the cells that were measured, and at the beginning from what cells usually take.
  std::string TimeLeft() const;
  void DrawStatus();
  void ClearStatus();

  const bool quiet_;
  const bool terminal_;
  int total_ = 0;
  int done_ = 0;
  int reused_ = 0;  // cells with an earlier result
  int red_ = 0;
  int running_ = 0;
  bool status_shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace bkm

#endif  // HARNESS_CLI_CONSOLE_OBSERVER_H_
