// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// Bounds the worker's memory when a subject writes to the pipe without end.
constexpr size_t kLongestLine = 64 << 20;

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

Json Parse(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  const std::string repaired = WithoutNonFinite(text);
  return Json::parse(repaired, nullptr, /*allow_exceptions=*/false);
}

// Objects are merged key by key; anything else is replaced.
void Merge(Json& into, const Json& from) {
  if (!into.is_object() || !from.is_object()) {
    into = from;
    return;
  }
  for (const auto& [key, value] : from.items()) Merge(into[key], value);
}

// {"steps":X} appends X to the list "steps"; {"mask":{"calls":X}} appends X to the list "calls" of
// the object "mask" when "mask" is an object already.
bool Append(Json& into, const Json& from) {
  if (!from.is_object()) return false;
  bool fits = true;
  for (const auto& [key, value] : from.items()) {
    Json& place = into[key];
    if (place.is_object()) {
      fits = Append(place, value) && fits;
    } else if (place.is_array() || place.is_null()) {
      place.push_back(value);
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
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, newline);
    if (!too_long_) line_.append(piece.data(), piece.size());
    if (line_.size() > kLongestLine) {
      too_long_ = true;
      line_.assign(1, '?');  // not empty, so that ignored() counts it
    }
    if (newline == bytes.npos) return;
    bytes.remove_prefix(newline + 1);
    const std::string line = std::exchange(line_, "");
    if (std::exchange(too_long_, false)) {
      ++ignored_;
    } else {
      TakeLine(line);
    }
  }
}

void EventLog::TakeLine(absl::string_view line) {
  int64_t at_us = 0;
  int64_t rss_kib = 0;
  const size_t first = line.find(' ');
  const size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
  const bool framed = second != line.npos && absl::SimpleAtoi(line.substr(0, first), &at_us) &&
                      absl::SimpleAtoi(line.substr(first + 1, second - first - 1), &rss_kib);
  if (!framed || !Apply(at_us, rss_kib, Parse(line.substr(second + 1)))) ++ignored_;
}

bool EventLog::Apply(int64_t at_us, int64_t rss_kib, const Json& event) {
  if (!event.is_object()) return false;
  bool understood = false;
  bool fits = true;
  for (const auto& [key, value] : event.items()) {
    if (key == "stage" && value.is_string()) {
      EndStage(at_us, rss_kib);
      stages_.push_back({value.get<std::string>(), at_us, std::nullopt, rss_kib});
    } else if (key == "set" && value.is_object()) {
      Merge(facts_, value);
    } else if (key == "append") {
      fits = Append(facts_, value) && fits;
    } else if (key == "exception" && value.is_object()) {
      raised_ = true;
      facts_["exception"] = value;
    } else if (key == "done" && value == true) {
      done_ = true;
      EndStage(at_us, rss_kib);
    } else if (key == "failed_to_start" && value.is_string()) {
      failed_to_start_ = value.get<std::string>();
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
    if (stage.end_us) entry["seconds"] = static_cast<double>(*stage.end_us - stage.begin_us) / 1e6;
    stages.push_back(std::move(entry));
  }
  observation["stages"] = std::move(stages);
  if (ignored() > 0) observation["ignored_events"] = ignored();
  return observation;
}

}  // namespace bkm
