// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/bisect_report.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::vector<RuntimeChange::Package> ChangedPackages(const RuntimeLock* before,
                                                    const RuntimeLock* after) {
  std::vector<RuntimeChange::Package> changed;
  if (!before || !after) return changed;
  std::map<std::string, RuntimeChange::Package> all;
  for (const LockedPackage& package : before->packages)
    all[package.name] = {package.name, package.version, ""};
  for (const LockedPackage& package : after->packages) {
    all[package.name].name = package.name;
    all[package.name].after = package.version;
  }
  for (const auto& [name, package] : all) {
    if (package.before != package.after) changed.push_back(package);
  }
  return changed;
}

// Builds the report of one investigation.
class BisectReporter {
 public:
  BisectReporter(const HistoryAxis& axis, const Investigation& investigation)
      : axis_(axis), investigation_(investigation), result_(investigation.result()) {}

  BisectReport Make(const Criterion& criterion, const FindLock& find_lock,
                    const SearchEffort& effort) const {
    const BisectionResult& found = result_.bisection;
    BisectReport report{.status = found.status,
                        .why = found.why,
                        .axis = axis_.kind(),
                        .cell = axis_.CellAt(axis_.late()).id,
                        .bad_means = criterion.Text(),
                        .newer_end = At(found.late),
                        .parents = At(found.parents),
                        .candidates = At(found.candidates),
                        .runtime = Runtime(find_lock),
                        .flaky = Flaky(),
                        .effort = effort};
    if (found.after != Side::kNeither)
      report.direction = found.after == Side::kGood ? Direction::kMended : Direction::kBroke;
    if (found.early) report.older_end = At(*found.early);
    if (found.culprit >= 0) {
      report.culprit = At(found.culprit);
      report.confidence = result_.confidence;
    }
    if (found.status == SearchStatus::kFound) report.made_by = result_.made_by;
    return report;
  }

 private:
  MeasuredCommit At(int commit) const {
    const Outcome* outcome = investigation_.OutcomeOf(commit);
    return {axis_.Named(commit), outcome ? std::optional<Outcome>(*outcome) : std::nullopt};
  }
  std::vector<MeasuredCommit> At(const std::vector<int>& commits) const {
    std::vector<MeasuredCommit> measured;
    for (const int commit : commits) measured.push_back(At(commit));
    return measured;
  }

  std::optional<RuntimeChange> Runtime(const FindLock& find_lock) const {
    if (result_.runtime_before.empty()) return std::nullopt;
    return RuntimeChange{
        result_.runtime_before, result_.runtime_after,
        ChangedPackages(find_lock(result_.runtime_before), find_lock(result_.runtime_after))};
  }

  std::optional<FlakyEstimate> Flaky() const {
    if (!result_.flaky) return std::nullopt;
    const FlakyResult& flaky = *result_.flaky;
    FlakyEstimate estimate{.confidence = flaky.confidence,
                           .no_culprit = flaky.no_culprit,
                           .flake_rate = flaky.flake_rate,
                           .miss_rate = flaky.miss_rate,
                           .runs = flaky.runs};
    for (const auto& [commit, weight] : flaky.likely) {
      if (weight < 0.001 || estimate.likely.size() == 10) break;
      estimate.likely.push_back({axis_.CommitAt(commit).id, weight});
    }
    return estimate;
  }

  const HistoryAxis& axis_;
  const Investigation& investigation_;
  const InvestigationResult& result_;
};

std::string SideLine(const char* name, const MeasuredCommit& commit) {
  if (!commit.outcome) return "";
  const Verdict& verdict = commit.outcome->verdict;
  return absl::StrCat(
      "  ", name, " ", ToText(commit, /*with_title=*/false), ": ", ShortText(verdict),
      verdict.kind == VerdictKind::kOk ? "" : absl::StrCat(": ", verdict.message), "\n");
}

std::string CulpritText(const BisectReport& report) {
  const MeasuredCommit& culprit = *report.culprit;
  std::string text = absl::StrCat(
      report.direction == Direction::kBroke ? "Broken by " : "Mended by ", ToText(culprit), "\n");
  for (const MeasuredCommit& parent : report.parents)
    absl::StrAppend(&text, SideLine("before:", parent));
  absl::StrAppend(&text, SideLine("after: ", culprit));
  // A later commit may have made the newer end bad in another way.
  const std::optional<Outcome> end = report.newer_end ? report.newer_end->outcome : std::nullopt;
  if (end && culprit.outcome && ShortText(end->verdict) != ShortText(culprit.outcome->verdict)) {
    absl::StrAppend(&text, SideLine("the newer end differs:", *report.newer_end),
                    "  Another commit caused that: find it with --until \"reason=",
                    end->verdict.reason, "\", or every change with bkm timeline\n");
  }
  return text;
}

const char* MeaningOf(MadeBy made_by) {
  switch (made_by) {
    case MadeBy::kCommit:
      return "the commit makes the difference, in either runtime";
    case MadeBy::kRuntime:
      return "the runtime makes the difference; in one runtime the commit makes none";
    case MadeBy::kBoth:
      return "only the commit and its runtime together make the difference";
    case MadeBy::kEither:
      return "the commit alone makes the difference, and so does the runtime alone";
    case MadeBy::kUndecided:
      return "commit and runtime changed together; which of them makes the difference could not be "
             "judged";
  }
  return "";
}

std::string RuntimeText(const RuntimeChange& runtime, MadeBy made_by) {
  std::string text = absl::StrCat("  runtime ", runtime.before.substr(0, 12), " -> ",
                                  runtime.after.substr(0, 12), ": ", MeaningOf(made_by), "\n");
  const auto version = [](const std::string& version) {
    return version.empty() ? "none" : version;
  };
  for (const RuntimeChange::Package& package : runtime.changed)
    absl::StrAppend(&text, "    ", package.name, " ", version(package.before), " -> ",
                    version(package.after), "\n");
  return text;
}

}  // namespace

const char* Name(Direction direction) {
  return direction == Direction::kBroke ? "broke" : "mended";
}

BisectReport MakeBisectReport(const HistoryAxis& axis, const Investigation& investigation,
                              const Criterion& criterion, const FindLock& find_lock,
                              const SearchEffort& effort) {
  return BisectReporter(axis, investigation).Make(criterion, find_lock, effort);
}

// Either all keys of an outcome are present or none.
static void DescribeOutcome(Fields& fields, std::optional<Outcome>& outcome) {
  std::string kind, stage, reason, message, lock;
  if (outcome) {
    const Verdict& verdict = outcome->verdict;
    kind = std::string(Name(verdict.kind));
    stage = std::string(Name(verdict.stage));
    reason = verdict.reason;
    message = verdict.message;
    lock = outcome->lock;
  }
  // An empty reason is written, too.
  const Presence presence = outcome ? Presence::kOptional : Presence::kOmitted;
  fields.Field("verdict", kind, presence);
  fields.Field("stage", stage, presence);
  fields.Field("reason", reason, presence);
  fields.Field("message", message, presence);
  fields.Field("lock", lock, presence);
  if (!fields.reading() || kind.empty()) return;
  const std::optional<VerdictKind> known_kind = VerdictKindFromName(kind);
  const std::optional<Stage> known_stage = StageFromName(stage);
  if (!known_kind) return fields.Fail("verdict", absl::StrCat("unknown name '", kind, "'"));
  if (!known_stage) return fields.Fail("stage", absl::StrCat("unknown name '", stage, "'"));
  outcome = Outcome{
      {.kind = *known_kind, .stage = *known_stage, .reason = reason, .message = message}, lock};
}

static void Describe(Fields& fields, MeasuredCommit& commit) {
  Describe(fields, static_cast<NamedCommit&>(commit));
  DescribeOutcome(fields, commit.outcome);
}

static void Describe(Fields& fields, RuntimeChange::Package& package) {
  fields.Field("package", package.name);
  fields.Field("before", package.before);
  fields.Field("after", package.after);
}

static void Describe(Fields& fields, RuntimeChange& runtime) {
  fields.Field("before", runtime.before);
  fields.Field("after", runtime.after);
  fields.Field("changed", runtime.changed);
}

static void Describe(Fields& fields, FlakyEstimate::Likely& likely) {
  fields.Field("commit", likely.commit);
  fields.Field("probability", likely.probability);
}

static void Describe(Fields& fields, FlakyEstimate& flaky) {
  fields.Field("confidence", flaky.confidence);
  fields.Field("no_culprit", flaky.no_culprit);
  fields.Field("flake_rate", flaky.flake_rate);
  fields.Field("miss_rate", flaky.miss_rate);
  fields.Field("runs", flaky.runs);
  fields.Field("likely", flaky.likely);
}

void Describe(Fields& fields, BisectReport& report) {
  DescribeSchema(fields);
  fields.Name("status", report.status, NamesUpTo(SearchStatus::kUnstable));
  fields.Field("why", report.why);
  fields.Name("axis", report.axis, NamesUpTo(AxisKind::kBoth));
  fields.Field("cell", report.cell);
  fields.Field("bad_means", report.bad_means);
  DescribeName(fields, "direction", report.direction, Direction::kMended);
  fields.Field("older_end", report.older_end);
  fields.Field("newer_end", report.newer_end);
  fields.Field("culprit", report.culprit);
  fields.Field("parents", report.parents);
  fields.Field("candidates", report.candidates);
  DescribeName(fields, "made_by", report.made_by, MadeBy::kUndecided);
  fields.Field("runtime", report.runtime);
  fields.Field("confidence", report.confidence, Presence::kOmitted);
  fields.Field("flaky", report.flaky);
  DescribeEffort(fields, report.effort);
}

OrderedJson ToJson(const BisectReport& report) { return WriteFields(report); }

absl::StatusOr<BisectReport> BisectReportFromJson(const Json& json, const std::string& origin) {
  return ReadFields<BisectReport>(json, origin);
}

std::string ToSummary(const BisectReport& report) {
  std::string text = report.culprit ? CulpritText(report)
                                    : absl::StrCat("No culprit found (", Name(report.status),
                                                   "): ", report.why, "\n");
  if (report.runtime && report.made_by)
    absl::StrAppend(&text, RuntimeText(*report.runtime, *report.made_by));
  if (report.status == SearchStatus::kAmbiguous || report.status == SearchStatus::kUnstable) {
    absl::StrAppend(&text, "Candidates:\n");
    for (const MeasuredCommit& commit : report.candidates)
      absl::StrAppend(&text, "  ", ToText(commit), "\n");
  }
  if (report.confidence && !report.flaky) {
    // Rounded down: a search is never sure.
    absl::StrAppend(&text, absl::StrFormat("  confidence: %.2f %%, if at most %.0f %% of all runs "
                                           "end by chance as they should not\n",
                                           std::floor(1e4 * *report.confidence) / 100,
                                           100 * kAssumedFlakeRate));
  }
  if (const std::optional<FlakyEstimate>& flaky = report.flaky) {
    absl::StrAppend(&text, absl::StrFormat("  flaky: %.1f %% sure after %d runs (flake rate before "
                                           "the culprit %.0f %%, miss rate after it %.0f %%)\n",
                                           100 * flaky->confidence, flaky->runs,
                                           100 * flaky->flake_rate, 100 * flaky->miss_rate));
  }
  absl::StrAppend(&text, "\n", EffortText(report.effort), "\n");
  return Printable(text);
}

}  // namespace bkm
