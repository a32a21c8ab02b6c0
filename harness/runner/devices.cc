// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/devices.h"

#include <chrono>
#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

// A device with what CUDA_VISIBLE_DEVICES may call it.
struct Listed {
  CudaDevice device;
  std::string uuid;
};

// "9.0, 81559, 550.54.15, GPU-1b2c, NVIDIA H100 80GB HBM3". The name comes last: it may have
// commas.
std::optional<Listed> ParseLine(absl::string_view line) {
  std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(',', 4));
  if (fields.size() != 5) return std::nullopt;
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  const std::vector<std::string> capability = absl::StrSplit(fields[0], '.');
  Listed listed{.uuid = fields[3]};
  CudaDevice& device = listed.device;
  device.driver = fields[2];
  device.name = fields[4];
  if (capability.size() != 2 || !absl::SimpleAtoi(capability[0], &device.major) ||
      !absl::SimpleAtoi(capability[1], &device.minor) ||
      !absl::SimpleAtoi(fields[1], &device.memory_mib) || device.name.empty())
    return std::nullopt;
  return listed;
}

// CUDA's rule: numbers or the beginnings of UUIDs; what follows an entry that names no device is
// not visible.
std::vector<CudaDevice> Visible(const std::vector<Listed>& all, const std::string& wanted) {
  std::vector<CudaDevice> visible;
  for (absl::string_view entry : absl::StrSplit(wanted, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    const Listed* found = nullptr;
    size_t number = 0;
    if (absl::SimpleAtoi(entry, &number)) {
      if (number < all.size()) found = &all[number];
    } else if (!entry.empty()) {
      for (const Listed& listed : all)
        if (found == nullptr && absl::StartsWith(listed.uuid, entry)) found = &listed;
    }
    if (found == nullptr) break;
    visible.push_back(found->device);
  }
  return visible;
}

}  // namespace

absl::StatusOr<std::vector<CudaDevice>> FindDevices(const std::string& program) {
  const absl::StatusOr<ProcessResult> asked =
      RunCommand({.argv = {program, "--query-gpu=compute_cap,memory.total,driver_version,uuid,name",
                           "--format=csv,noheader,nounits"},
                  .timeout = std::chrono::seconds(60)});
  if (absl::IsNotFound(asked.status())) return std::vector<CudaDevice>();
  RETURN_IF_ERROR(asked.status());
  const auto failed = [&](absl::string_view what) {
    return absl::UnavailableError(absl::StrCat(program, " cannot list the CUDA devices: ", what));
  };
  if (asked->timed_out) return failed("no answer in 60 s");
  if (!asked->ok()) {
    // It prints errors to either stream. A driver without devices is not an error of the machine.
    const std::string text = absl::StrCat(asked->out, asked->err);
    if (absl::StrContains(text, "No devices were found")) return std::vector<CudaDevice>();
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
    return failed(lines.empty() ? absl::StrCat("exit code ", asked->exit_code) : lines.front());
  }
  std::vector<Listed> all;
  for (absl::string_view line : absl::StrSplit(asked->out, '\n', absl::SkipWhitespace())) {
    const std::optional<Listed> listed = ParseLine(line);
    if (!listed) {
      if (absl::StrContains(line, "No devices were found")) break;
      return failed(absl::StrCat("unexpected line '", line, "'"));
    }
    all.push_back(*listed);
  }
  if (const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES")) return Visible(all, wanted);
  std::vector<CudaDevice> devices;
  for (const Listed& listed : all) devices.push_back(listed.device);
  return devices;
}

void UseDevices(const std::vector<CudaDevice>& devices, int memory_mib, PreparedCell& cell) {
  if (cell.record.cell.probe.device == "cpu" || cell.stopped) return;
  cell.device_cells = CellsAtOnce(devices, memory_mib);
  cell.worker.cold = true;
  absl::StrAppend(&cell.worker.key, "-cuda");  // cells on a CPU keep their warm worker
}

}  // namespace bkm
