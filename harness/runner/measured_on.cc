// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/measured_on.h"

#include <sys/utsname.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/base/version.h"
#include "harness/numerics/golden_key.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kMachineFile[] = "machine.json";
constexpr int64_t kLargestNote = 1 << 20;

}  // namespace

absl::StatusOr<WorkMachine> ThisMachine(const std::string& cell_code, SandboxLevel sandbox) {
  WorkMachine machine{.bkm = kVersion,
                      .cell_code = cell_code,
                      .sandbox = std::string(Name(sandbox)),
                      .cores = static_cast<int>(std::thread::hardware_concurrency())};
  ASSIGN_OR_RETURN(machine.cpu, CpuFeatures());
  struct utsname system = {};
  if (::uname(&system) == 0) machine.system = absl::StrCat(system.sysname, " ", system.release);
  return machine;
}

MeasuredOn MeasuredOnOf(const WorkMachine& machine, const RuntimeLock* lock) {
  if (!lock) return {.machine = machine};
  return {.machine = machine,
          .python = lock->python,
          .torch = lock->VersionOf("torch"),
          .packages = static_cast<int>(lock->packages.size())};
}

void Describe(Fields& fields, WorkMachine& machine) {
  fields.Field("bkm", machine.bkm);
  fields.Field("cell_code", machine.cell_code);
  fields.OneOf("sandbox", machine.sandbox, SandboxLevelNames());
  fields.Field("cpu", machine.cpu);
  fields.Int("cores", machine.cores, 0, 1 << 20);
  fields.Field("system", machine.system);
  fields.Field("devices", machine.devices, Presence::kOmitted);
}

void Describe(Fields& fields, MeasuredOn& measured) {
  Describe(fields, measured.machine);
  fields.Field("python", measured.python, Presence::kOmitted);
  fields.Field("torch", measured.torch, Presence::kOmitted);
  fields.Int("packages", measured.packages, 0, 1 << 30, Presence::kOmitted);
}

std::string MeasuredOnText(const MeasuredOn& measured) {
  const WorkMachine& machine = measured.machine;
  std::string text = absl::StrCat(machine.cpu, ", ", machine.cores, " cores, ", machine.system,
                                  ", sandbox ", machine.sandbox, ", bkm ", machine.bkm);
  if (!machine.devices.empty()) absl::StrAppend(&text, ", ", DevicesText(machine.devices));
  if (!measured.python.empty())
    absl::StrAppend(&text, ", Python ", measured.python, ", ", measured.packages, " packages");
  if (!measured.torch.empty()) absl::StrAppend(&text, ", torch ", measured.torch);
  return text;
}

absl::Status WriteMeasuredOn(const MeasuredOn& measured, const fs::path& cell) {
  return WriteScratchFile(cell / kMachineFile, ToText(WriteFields(measured)));
}

absl::StatusOr<std::optional<MeasuredOn>> ReadMeasuredOn(const RunRecord& run,
                                                         const fs::path& cell) {
  const Json machines = ListOf(run.made_by, "machines");
  if (machines.empty()) return std::nullopt;
  const absl::StatusOr<std::string> text = FolderReader(cell).Read(kMachineFile, kLargestNote);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(text.status());
  const std::string path = (cell / kMachineFile).string();
  ASSIGN_OR_RETURN(const Json json, ParseJson(*text, path));
  if (std::find(machines.begin(), machines.end(), json) == machines.end()) return std::nullopt;
  ASSIGN_OR_RETURN(MeasuredOn measured, ReadFields<MeasuredOn>(json, path));
  return measured;
}

}  // namespace bkm
