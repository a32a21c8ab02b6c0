// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/all_commands.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "harness/base/status_macros.h"
#include "harness/cli/run_commands.h"
#include "harness/history/api_session.h"
#include "harness/publish/priority.h"
#include "harness/publish/published_table.h"
#include "harness/publish/rows.h"
#include "harness/ray/make_executor.h"

namespace bkm {
namespace {

// The value of an option, or an error that names the option.
template <typename T>
absl::StatusOr<T> Of(const char* option, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", value.status().message()));
}

// An UrgencyOrder.
absl::StatusOr<std::string> BringUrgentFirst(const Installation& installation,
                                             const std::string& table,
                                             std::vector<PlannedCell>& plan) {
  const std::filesystem::path path =
      table.empty() ? DefaultTable(installation.root) : std::filesystem::path(table);
  if (path.empty()) {
    return absl::NotFoundError(
        "--urgent-first: no published table came with this installation: name one with --table");
  }
  ASSIGN_OR_RETURN(const TableOnDisk published, ReadPublishedTable(path));
  const Priorities priorities(published.table, Today());
  priorities.Sort(plan);
  return priorities.Counts(plan);
}

// A StaticCheck.
absl::StatusOr<int> CheckSources(const std::filesystem::path& mirrors,
                                 const std::filesystem::path& matrix_folder, const Matrix& matrix,
                                 std::vector<PlannedCell>& plan, RunObserver& observer) {
  ApiSession session(mirrors, matrix_folder);
  RETURN_IF_ERROR(session.AddSources(matrix));
  return MarkStaticallyRed(session, plan, observer);
}

}  // namespace

absl::StatusOr<ExecutorMaker> MakeRayExecutors(const RayOptions& options) {
  RaySettings settings{.address = options.address,
                       .program = options.program,
                       .lease = absl::Seconds(options.lease_s)};
  ASSIGN_OR_RETURN(settings.resources, Of("--ray-resources", ParseRayResources(options.resources)));
  ASSIGN_OR_RETURN(settings.labels, Of("--ray-labels", ParseRayLabels(options.labels)));
  return RayExecutors(std::move(settings));
}

Commands AllCommands() {
  Commands commands = RunCommands({MakeRayExecutors, BringUrgentFirst, CheckSources});
  commands.push_back(MakeSensitivityCommand());
  commands.push_back(MakeBisectCommand());
  commands.push_back(MakeTimelineCommand());
  commands.push_back(MakeSelftestCommand());
  commands.push_back(MakeApicheckCommand());
  commands.push_back(MakeMapCommand());
  commands.push_back(MakeWhichCommand());
  commands.push_back(MakeSiteCommand());
  commands.push_back(MakeMergeCommand());
  commands.push_back(MakePackCommand());
  commands.push_back(MakeWorkCommand());
  commands.push_back(MakeUnpackCommand());
  commands.push_back(MakeServeCommand());
  commands.push_back(MakePublishCommand());
  commands.push_back(MakeDiffCommand());
  commands.push_back(MakeDriftCommand());
  commands.push_back(MakeAcceptCommand());
  commands.push_back(MakeCheckCommand());
  commands.push_back(MakeAuditCommand());
  commands.push_back(MakeCleanCommand());
  commands.push_back(MakeTortureCommand());
  commands.push_back(MakeCompletionCommand());
  commands.push_back(MakeManCommand());
  return commands;
}

}  // namespace bkm
