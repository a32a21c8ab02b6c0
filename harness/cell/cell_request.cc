// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_request.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// A cell may compute in all of its threads until its time is over. The rest is for what runs beside
// them, such as compilers. It is above 1, so that a single thread without end always times out.
constexpr double kCpuShare = 1.25;

// A number of the probe, from 1 to 1024; 1 if it has none.
double CountOf(const Json& probe, const char* key) {
  const Json count = probe.is_object() ? probe.value(key, Json()) : Json();
  return count.is_number_integer() ? std::clamp(count.get<double>(), 1.0, 1024.0) : 1;
}

// Empty, if it is not an absolute path.
std::filesystem::path AbsolutePath(const Json& value) {
  if (!value.is_string()) return {};
  std::filesystem::path path = value.get<std::string>();
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

absl::StatusOr<RequestedLimits> ParseLimits(const Json& limits) {
  RequestedLimits parsed;
  ObjectReader reader(limits, "request", "$.limits");
  parsed.timeout_s = reader.Number("timeout_s", 0);
  parsed.cpu_s = reader.Number("cpu_s", 0);
  parsed.memory_mib = reader.Int("memory_mib", 0, 0, int64_t{1} << 40);
  parsed.output_mib = reader.Int("output_mib", 0, 0, int64_t{1} << 40);
  parsed.processes = reader.Int("processes", 0, 0, int64_t{1} << 30);
  RETURN_IF_ERROR(reader.Finish());
  return parsed;
}

absl::StatusOr<CellRequest> ParseCellRequest(const Json& json) {
  CellRequest request;
  const auto text = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : "";
  };
  request.cell = text("cell");
  request.dir = text("dir");
  if (request.cell.empty()) return absl::InvalidArgumentError("request: $.cell is missing");
  if (!request.dir.is_absolute()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: $.dir must be an absolute path, not '", request.dir.string(), "'"));
  }
  if (json.contains("limits")) {
    ASSIGN_OR_RETURN(request.limits, ParseLimits(json["limits"]));
  }
  request.probe_dir = AbsolutePath(json.value("probe_dir", Json()));
  if (!request.probe_dir.empty()) request.reads.push_back(request.probe_dir);
  if (json.contains("paths") && json["paths"].is_object()) {
    for (const auto& [subject, value] : json["paths"].items()) {
      const std::filesystem::path path = AbsolutePath(value);
      if (path.empty()) continue;
      request.trees.emplace_back(subject, path);
      request.reads.push_back(path);
    }
  }
  const Json probe = json.value("probe", Json());
  const double threads = CountOf(probe, "threads"), ranks = CountOf(probe, "ranks");
  request.several_ranks = ranks > 1;
  request.on_cpu = !probe.is_object() || probe.value("device", Json("cpu")) == "cpu";
  // Attention is compiled on a GPU, by as many processes as the machine has processors.
  const double compilers = request.on_cpu ? 1 : std::max(1u, std::thread::hardware_concurrency());
  if (request.limits.cpu_s == 0)
    request.limits.cpu_s = kCpuShare * request.limits.timeout_s * threads * ranks * compilers;
  request.all = json;
  return request;
}

}  // namespace bkm
