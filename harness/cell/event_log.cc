// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// Bound the memory and the time of the worker, which serves other cells too. The largest reports of
// real cells have 2 MiB, 100,000 values and 12 levels. A value can take 30 times the memory of its
// text.
constexpr size_t kLongestLine = 8 << 20;
constexpr size_t kMostBytes = 32 << 20;
constexpr int64_t kMostEvents = 200'000;
constexpr size_t kMostValues = 1'000'000;
constexpr size_t kDeepestEvent = 64;
constexpr size_t kMostStages = 20'000;
constexpr size_t kLongestStageName = 32;

// Facts that the worker and the runner state about a cell, so the cell cannot.
constexpr absl::string_view kNotTheCells[] = {"schema",   "ending",  "stages",        "usage",
                                              "versions", "sandbox", "observed",      "measured",
                                              "timeouts", "machine", "ignored_events"};

// Python writes numbers that are not finite as NaN and Infinity, which are not JSON. They become
// null, so that a loss of NaN does not invalidate its event.
std::string WithoutNonFinite(absl::string_view text) {
  std::string result;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      result += c;
      result += text[++i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == 'N' || c == 'I' || c == '-')) {
      absl::string_view found;
      for (absl::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (text.substr(i, word.size()) == word) found = word;
      }
      if (!found.empty()) {
        result += "null";
        i += found.size() - 1;
        continue;
      }
    }
    result += c;
  }
  return result;
}

// How much a text holds, found without parsing it. For a text that is not JSON, the numbers only
// bound the work of a parser.
struct Extent {
  size_t values = 1;
  size_t levels = 0;
};

Extent Measure(absl::string_view text) {
  Extent extent;
  size_t level = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      i += c == '\\';
    } else if (c == '[' || c == '{') {
      ++extent.values;
      extent.levels = std::max(extent.levels, ++level);
    } else if (c == ']' || c == '}') {
      level -= level > 0;
    } else {
      extent.values += c == ',';
    }
  }
  return extent;
}

bool IsStageName(absl::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  return !name.empty() && name.size() <= kLongestStageName &&
         std::all_of(name.begin(), name.end(), fits);
}

// Removes the facts that are not the cell's; true if there were any.
bool RemoveForeign(Json& facts) {
  if (!facts.is_object()) return false;
  size_t removed = 0;
  for (const absl::string_view fact : kNotTheCells) removed += facts.erase(std::string(fact));
  return removed > 0;
}

// Objects are merged key by key; anything else is replaced.
void Merge(Json& into, Json& from) {
  if (!into.is_object() || !from.is_object()) {
    into = std::move(from);
    return;
  }
  for (auto& [key, value] : from.get_ref<Json::object_t&>()) Merge(into[key], value);
}

// {"steps":X} appends X to the list "steps"; {"mask":{"calls":X}} appends X to the list "calls" of
// the object "mask" when "mask" is an object already.
bool Append(Json& into, Json& from) {
  if (!from.is_object()) return false;
  bool fits = true;
  for (auto& [key, value] : from.get_ref<Json::object_t&>()) {
    Json& place = into[key];
    if (place.is_object()) {
      fits = Append(place, value) && fits;
    } else if (place.is_array() || place.is_null()) {
      place.push_back(std::move(value));
    } else {
      fits = false;
    }
  }
  return fits;
}

}  // namespace

std::string FrameEvent(int64_t at_us, int64_t rss_kib, absl::string_view json) {
  return absl::StrCat(at_us, " ", rss_kib, " ", json, "\n");
}

void EventLog::Feed(absl::string_view bytes) {
  while (!bytes.empty() && overrun_.empty()) {
    const size_t newline = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, newline);
    bytes_ += piece.size();
    if (bytes_ > kMostBytes)
      return Overrun(absl::StrCat("its events have more than ", kMostBytes >> 20, " MiB"));
    line_.append(piece.data(), piece.size());
    if (line_.size() > kLongestLine)
      return Overrun(absl::StrCat("an event has more than ", kLongestLine >> 20, " MiB"));
    if (newline == bytes.npos) return;
    bytes.remove_prefix(newline + 1);
    TakeLine(std::exchange(line_, ""));
  }
}

void EventLog::Overrun(std::string what) {
  overrun_ = std::move(what);
  line_.clear();
  line_.shrink_to_fit();
}

void EventLog::TakeLine(absl::string_view line) {
  if (++events_ > kMostEvents)
    return Overrun(absl::StrCat("it reported more than ", kMostEvents, " events"));
  int64_t at_us = 0;
  int64_t rss_kib = 0;
  const size_t first = line.find(' ');
  const size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
  // The bounds keep sums of these numbers from overflowing.
  const bool framed = second != line.npos && absl::SimpleAtoi(line.substr(0, first), &at_us) &&
                      absl::SimpleAtoi(line.substr(first + 1, second - first - 1), &rss_kib) &&
                      at_us >= 0 && at_us < int64_t{1} << 53 && rss_kib >= 0 &&
                      rss_kib < int64_t{1} << 42;
  if (!framed || !Apply(at_us, rss_kib, Parse(line.substr(second + 1)))) ++ignored_;
}

Json EventLog::Parse(absl::string_view text) {
  const Extent extent = Measure(text);
  values_ += extent.values;
  if (extent.levels > kDeepestEvent) {
    Overrun(absl::StrCat("an event is nested deeper than ", kDeepestEvent, " levels"));
  } else if (values_ > kMostValues) {
    Overrun(absl::StrCat("its events have more than ", kMostValues, " values"));
  }
  if (!overrun_.empty()) return Json();
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  const std::string repaired = WithoutNonFinite(text);
  return Json::parse(repaired, nullptr, /*allow_exceptions=*/false);
}

bool EventLog::EnterStage(int64_t at_us, int64_t rss_kib, const std::string& name) {
  if (done_ || !IsStageName(name)) return false;
  EndStage(at_us, rss_kib);
  stages_.push_back({name, at_us, std::nullopt, rss_kib});
  if (stages_.size() > kMostStages)
    Overrun(absl::StrCat("it entered more than ", kMostStages, " stages"));
  return true;
}

bool EventLog::Apply(int64_t at_us, int64_t rss_kib, Json event) {
  if (!event.is_object()) return false;
  bool understood = false;
  bool fits = true;
  const bool was_done = done_;  // what is told together with the end belongs to the cell
  for (auto& [key, value] : event.get_ref<Json::object_t&>()) {
    const bool is_fact = key == "set" || key == "append";
    if (is_fact && handed_over_ && RemoveForeign(value)) fits = false;
    if (key == "stage" && value.is_string()) {
      fits = EnterStage(at_us, rss_kib, value.get<std::string>()) && fits;
    } else if (is_fact && was_done) {
      fits = false;
    } else if (key == "set" && value.is_object()) {
      Merge(facts_, value);
    } else if (key == "append") {
      fits = Append(facts_, value) && fits;
    } else if (key == "exception" && value.is_object()) {
      raised_ = true;
      facts_["exception"] = std::move(value);
    } else if (key == "done" && value == true) {
      done_ = true;
      EndStage(at_us, rss_kib);
    } else if (key == "handed_over" && value == true) {
      handed_over_ = true;
    } else if (key == "failed_to_start" && value.is_string()) {
      if (handed_over_) {
        fits = false;
      } else {
        failed_to_start_ = value.get<std::string>();
      }
    } else {
      continue;  // unknown keys are ignored
    }
    understood = true;
  }
  return understood && fits;
}

void EventLog::EndStage(int64_t at_us, int64_t rss_kib) {
  if (stages_.empty() || stages_.back().end_us) return;
  stages_.back().end_us = at_us;
  stages_.back().rss_kib = rss_kib;
}

Json EventLog::Observation() const {
  Json observation = facts_;
  observation["schema"] = 1;
  Json stages = Json::array();
  for (const Stage& stage : stages_) {
    Json entry = {{"stage", stage.name}, {"rss_mib", stage.rss_kib / 1024}};
    // Without seconds: the cell ended inside it.
    if (stage.end_us) {
      entry["seconds"] =
          static_cast<double>(std::max<int64_t>(0, *stage.end_us - stage.begin_us)) / 1e6;
    }
    stages.push_back(std::move(entry));
  }
  observation["stages"] = std::move(stages);
  if (ignored() > 0) observation["ignored_events"] = ignored();
  return observation;
}

}  // namespace bkm
