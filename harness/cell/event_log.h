// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_EVENT_LOG_H_
#define HARNESS_CELL_EVENT_LOG_H_

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
// Lines that are no event are only counted: a subject can write anything to any descriptor.
// README.md lists the events.
class EventLog {
 public:
  // Takes bytes from the pipe, cut anywhere.
  void Feed(absl::string_view bytes);

  // The adapter finished.
  bool done() const { return done_; }
  // The adapter reported the exception that ended it.
  bool raised() const { return raised_; }
  // Why the cell could not be set up; nothing of a subject has run then.
  const std::optional<std::string>& failed_to_start() const { return failed_to_start_; }
  // The number of unreadable lines so far, including an incomplete last line.
  int64_t ignored() const { return ignored_ + (line_.empty() ? 0 : 1); }

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
  bool Apply(int64_t at_us, int64_t rss_kib, const Json& event);
  void EndStage(int64_t at_us, int64_t rss_kib);

  std::string line_;       // the line that is not complete yet
  bool too_long_ = false;  // the rest of the line is skipped
  int64_t ignored_ = 0;
  std::vector<Stage> stages_;
  Json facts_ = Json::object();
  bool done_ = false;
  bool raised_ = false;
  std::optional<std::string> failed_to_start_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_EVENT_LOG_H_
