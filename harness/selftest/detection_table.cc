// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/detection_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/model/probe.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr double kBand = 4;

std::string NameOf(const std::string& fault) { return fault.empty() ? "(none)" : fault; }

std::string CaughtBy(const Detection& d) {
  if (d.reason.empty()) return "";
  return absl::StrCat(d.stage, ", ", d.reason,
                      d.check.empty() ? "" : absl::StrCat(" (", d.check, ")"));
}

std::string MarginText(const std::optional<double>& margin) {
  if (!margin) return "";
  return std::isfinite(*margin) ? absl::StrFormat("%.0f", *margin) : "inf";
}

std::string Line(const std::vector<std::string>& columns, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i)
    absl::StrAppend(&line, i ? "  " : "",
                    absl::StrFormat("%-*s", static_cast<int>(widths[i]), columns[i]));
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// The lower end of a margin's band.
double BandOf(double margin) {
  if (margin < kLeastMargin) return 0;
  if (!std::isfinite(margin)) return std::numeric_limits<double>::max();
  double low = kLeastMargin;
  while (margin >= low * kBand) low *= kBand;
  return low;
}

bool IsNearBand(double margin, double band) {
  const double slack = std::sqrt(kBand);
  const double end = band == 0 ? kLeastMargin : band * kBand;
  return BandOf(margin) == band || (margin >= band / slack && margin < end * slack);
}

using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
template <typename T>
Key KeyOf(const T& row) {
  return {row.engine, row.model, row.attention, row.drive, row.fault};
}

// "sdpa", "sdpa by the trainer".
template <typename T>
std::string AttentionText(const T& row) {
  return absl::StrCat(row.attention, row.drive == Probe().drive ? "" : " by the trainer");
}
// "drop-mask, verl-fsdp, qwen3, sdpa"
template <typename T>
std::string WhereText(const T& row) {
  return absl::StrCat(NameOf(row.fault), ", ", row.engine, ", ", row.model, ", ",
                      AttentionText(row));
}

std::string Describe(const GoldenDetection& row) {
  if (row.reason.empty()) return row.verdict;
  return absl::StrCat(row.verdict, " at ", row.stage, ", ", row.reason, " (", row.check, ")",
                      row.margin ? absl::StrFormat(", %.0f floors or more", *row.margin) : "");
}

}  // namespace

std::string DetectionText(const std::vector<Detection>& detections) {
  std::vector<std::vector<std::string>> rows = {
      {"fault", "engine", "model", "attention", "verdict", "caught by", "floors", ""}};
  size_t planted = 0, unexpected = 0;
  for (const Detection& d : detections) {
    rows.push_back({NameOf(d.fault), d.engine, d.model, AttentionText(d), d.verdict, CaughtBy(d),
                    MarginText(d.margin), std::string(Name(d.outcome))});
    planted += !d.fault.empty();
    unexpected += d.outcome != DetectionOutcome::kAsExpected;
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) text += Line(row, widths);
  for (const Detection& d : detections) {
    if (d.outcome == DetectionOutcome::kAsExpected) continue;
    absl::StrAppend(&text, "\n", std::string(Name(d.outcome)), ": ", WhereText(d), ": ",
                    d.message.empty() ? d.verdict : d.message);
  }
  std::set<std::string> whys;
  for (const Detection& d : detections) {
    if (!d.limit.empty()) whys.insert(absl::StrCat(d.limit, ": ", WhereText(d), ": ", d.why));
  }
  for (const std::string& why : whys) absl::StrAppend(&text, "\n", why);
  absl::StrAppend(&text, unexpected || !whys.empty() ? "\n\n" : "\n", planted,
                  " planted cells and ", detections.size() - planted, " fault-free ones: ",
                  unexpected ? absl::StrCat(unexpected, " NOT as expected") : "all as expected",
                  "\n");
  return Printable(text);
}

OrderedJson DetectionJson(const std::vector<Detection>& detections) {
  OrderedJson rows = OrderedJson::array();
  for (const Detection& d : detections) {
    OrderedJson row = {{"fault", d.fault.empty() ? OrderedJson() : OrderedJson(d.fault)},
                       {"engine", d.engine},
                       {"model", d.model},
                       {"attention", d.attention},
                       {"drive", d.drive},
                       {"verdict", d.verdict},
                       {"stage", d.stage},
                       {"reason", d.reason},
                       {"check", d.check},
                       {"outcome", std::string(Name(d.outcome))},
                       {"message", d.message}};
    if (d.margin && std::isfinite(*d.margin)) row["floors"] = *d.margin;
    if (!d.limit.empty()) {
      row["limit"] = d.limit;
      row["why"] = d.why;
    }
    rows.push_back(std::move(row));
  }
  return {{"schema", 1}, {"detections", rows}};
}

absl::StatusOr<std::vector<GoldenDetection>> GoldenDetectionsFromJson(const Json& json,
                                                                      const std::string& origin) {
  ObjectReader outer(json, origin);
  std::vector<GoldenDetection> golden;
  outer.Int("schema", 1, 1, 1);
  outer.ForEach("detections", [&](const Json& item, const std::string& path) {
    ObjectReader reader(item, origin, path);
    GoldenDetection& row = golden.emplace_back();
    row.fault = reader.String("fault", "");
    row.engine = reader.String("engine");
    row.model = reader.String("model");
    row.attention = reader.String("attention");
    row.drive = reader.String("drive", Probe().drive);
    row.verdict = reader.String("verdict");
    row.stage = reader.String("stage", "");
    row.reason = reader.String("reason", "");
    row.check = reader.String("check", "");
    if (reader.Has("floors")) row.margin = reader.Number("floors", 0);
    return reader.Finish();
  });
  RETURN_IF_ERROR(outer.Finish());
  return golden;
}

absl::StatusOr<std::vector<GoldenDetection>> ReadGoldenDetections(
    const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::vector<GoldenDetection>();
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  return GoldenDetectionsFromJson(json, file.string());
}

OrderedJson ToJson(const std::vector<GoldenDetection>& golden) {
  OrderedJson rows = OrderedJson::array();
  for (const GoldenDetection& row : golden) {
    OrderedJson json = OrderedJson::object();
    if (!row.fault.empty()) json["fault"] = row.fault;
    json["engine"] = row.engine;
    json["model"] = row.model;
    json["attention"] = row.attention;
    if (row.drive != Probe().drive) json["drive"] = row.drive;
    json["verdict"] = row.verdict;
    if (!row.reason.empty()) {
      json["stage"] = row.stage;
      json["reason"] = row.reason;
      json["check"] = row.check;
    }
    if (row.margin) json["floors"] = *row.margin;
    rows.push_back(std::move(json));
  }
  return {{"schema", 1}, {"detections", rows}};
}

std::vector<GoldenDetection> GoldenOf(const std::vector<Detection>& detections,
                                      const std::vector<GoldenDetection>& before) {
  std::map<Key, const GoldenDetection*> known;
  for (const GoldenDetection& row : before) known[KeyOf(row)] = &row;
  std::vector<GoldenDetection> golden;
  for (const Detection& d : detections) {
    GoldenDetection row{d.fault,   d.engine, d.attention, d.model, d.drive,
                        d.verdict, "",       "",          "",      {}};
    if (!d.reason.empty()) {
      row.stage = d.stage;
      row.reason = d.reason;
      row.check = d.check;
    }
    if (d.margin) {
      const auto old = known.find(KeyOf(d));
      const bool keep =
          old != known.end() && old->second->margin && IsNearBand(*d.margin, *old->second->margin);
      row.margin = keep ? *old->second->margin : BandOf(*d.margin);
    }
    golden.push_back(std::move(row));
  }
  std::sort(golden.begin(), golden.end(),
            [](const auto& a, const auto& b) { return KeyOf(a) < KeyOf(b); });
  return golden;
}

std::vector<GoldenDetection> Merged(const std::vector<GoldenDetection>& before,
                                    const std::vector<GoldenDetection>& now) {
  std::map<Key, GoldenDetection> rows;
  for (const GoldenDetection& row : before) rows[KeyOf(row)] = row;
  for (const GoldenDetection& row : now) rows[KeyOf(row)] = row;
  std::vector<GoldenDetection> merged;
  for (auto& [key, row] : rows) merged.push_back(std::move(row));
  return merged;
}

std::vector<std::string> DifferencesFrom(const std::vector<GoldenDetection>& golden,
                                         const std::vector<Detection>& detections, bool whole) {
  std::map<Key, const GoldenDetection*> known;
  for (const GoldenDetection& row : golden) known[KeyOf(row)] = &row;
  std::set<Key> ran;
  std::vector<std::string> differences;
  for (const GoldenDetection& now : GoldenOf(detections, golden)) {
    const std::string where = WhereText(now);
    const auto it = known.find(KeyOf(now));
    if (it == known.end()) {
      differences.push_back(absl::StrCat(where, ": not in the golden table; now ", Describe(now)));
      continue;
    }
    if (!(*it->second == now))
      differences.push_back(
          absl::StrCat(where, ": was ", Describe(*it->second), "; now ", Describe(now)));
    ran.insert(it->first);
  }
  for (const auto& [key, row] : known) {
    if (whole && !ran.contains(key))
      differences.push_back(
          absl::StrCat(WhereText(*row), ": in the golden table, but no cell of this row ran"));
  }
  return differences;
}

}  // namespace bkm
