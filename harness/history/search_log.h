// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_SEARCH_LOG_H_
#define HARNESS_HISTORY_SEARCH_LOG_H_

#include <chrono>
#include <filesystem>
#include <string>

#include "harness/runner/observer.h"

namespace bkm {

// The progress of a search: lines on the console and, with the time since the start, in search.log.
class SearchLog {
 public:
  // `console` must outlive this.
  SearchLog(std::filesystem::path file, RunObserver& console)
      : file_(std::move(file)), console_(console), start_(std::chrono::steady_clock::now()) {}
  void Line(const std::string& text);
  RunObserver& console() const { return console_; }

 private:
  const std::filesystem::path file_;
  RunObserver& console_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_SEARCH_LOG_H_
