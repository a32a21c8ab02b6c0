// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_EVENT_LOG_H_
#define HARNESS_CELL_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// One line of the event pipe: "<monotonic us> <rss KiB> <json>\n". `json` must be free of newlines.
std::string FrameEvent(int64_t at_us, int64_t rss_kib, absl::string_view json);

// The events of one cell, kept by the worker so that a cell that dies loses nothing it reported.
// Lines that are no event are only counted: a subject can write anything to any descriptor. Bytes,
// events, values and levels are bounded. README.md lists the events.
class EventLog {
 public:
  // Takes bytes from the pipe, cut anywhere.
  void Feed(absl::string_view bytes);

  // The adapter finished.
  bool done() const { return done_; }
  // The adapter reported the exception that ended it.
  bool raised() const { return raised_; }
  // Why the cell could not be set up. Accepted only before the event "handed_over", which the cell
  // writes before anything of a subject can run.
  const std::optional<std::string>& failed_to_start() const { return failed_to_start_; }
  // The number of unreadable lines so far, including an incomplete last line.
  int64_t ignored() const { return ignored_ + (line_.empty() ? 0 : 1); }

  // The limit that the events exceed, in words; empty while they are within all limits. Nothing is
  // taken afterwards.
  const std::string& overrun() const { return overrun_; }

  // The observation so far, without the ending and the usage.
  Json Observation() const;

 private:
  struct Stage {
    std::string name;
    int64_t begin_us = 0;
    std::optional<int64_t> end_us;
    int64_t rss_kib = 0;
  };

  void TakeLine(absl::string_view line);
  Json Parse(absl::string_view text);
  bool Apply(int64_t at_us, int64_t rss_kib, Json event);
  bool EnterStage(int64_t at_us, int64_t rss_kib, const std::string& name);
  void EndStage(int64_t at_us, int64_t rss_kib);
  void Overrun(std::string what);

  std::string line_;  // the line that is not complete yet
  size_t bytes_ = 0;
  size_t values_ = 0;
  int64_t events_ = 0;
  int64_t ignored_ = 0;
  std::string overrun_;
  bool handed_over_ = false;
  std::vector<Stage> stages_;
  Json facts_ = Json::object();
  bool done_ = false;
  bool raised_ = false;
  std::optional<std::string> failed_to_start_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_EVENT_LOG_H_
