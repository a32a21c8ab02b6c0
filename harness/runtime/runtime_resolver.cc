// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_resolver.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/runtime/interpreter.h"
#include "harness/source/requirement_policy.h"
#include "harness/store/checksums.h"
#include "harness/store/file_lock.h"

namespace bkm {
namespace fs = std::filesystem;
using std::chrono::sys_days;
using std::chrono::year_month_day;

namespace {

// Of a resolution whose answers differ.
constexpr int kMostRepeats = 3;

// Variables that decide where uv takes packages from. Another value may give another lock.
constexpr const char* kRegistryVariables[] = {"UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL",
                                              "UV_FIND_LINKS",    "UV_INDEX",
                                              "UV_INDEX_URL",     "UV_TORCH_BACKEND"};

std::string Midnight(sys_days day) {
  const year_month_day date(day);
  return absl::StrFormat("%04d-%02u-%02uT00:00:00Z", static_cast<int>(date.year()),
                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

// The first midnight after the month of "YYYY-MM-DD".
std::string EndOfMonth(absl::string_view date) {
  int year = 0, month = 0;
  const std::vector<absl::string_view> fields = absl::StrSplit(date, '-');
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &year) ||
      !absl::SimpleAtoi(fields[1], &month)) {
    return "";
  }
  return month == 12 ? absl::StrFormat("%04d-01-01T00:00:00Z", year + 1)
                     : absl::StrFormat("%04d-%02d-01T00:00:00Z", year, month + 1);
}

bool MentionsPackage(absl::string_view text, absl::string_view name) {
  const auto is_part = [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; };
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      return true;
    }
  }
  return false;
}

void AddOnce(const std::string& item, std::vector<std::string>& items) {
  if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
}

bool MatchesAny(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  });
}

std::string NameOf(const Subject& subject) {
  return absl::StrCat(subject.spec.name, " ", subject.label);
}

}  // namespace

std::string RequirementName(absl::string_view requirement) {
  size_t end = 0;
  while (end < requirement.size() && (absl::ascii_isalnum(requirement[end]) ||
                                      absl::StrContains("-_.", requirement.substr(end, 1)))) {
    ++end;
  }
  return NormalizedName(requirement.substr(0, end));
}

struct RuntimeResolver::Input {
  std::vector<std::string> base;          // requirements of the runtime itself
  std::vector<std::string> requirements;  // those of the subjects, in their order, and the base
  std::vector<std::string> overrides;     // replace every pin of the same packages
  std::vector<std::string> relaxed;
  std::vector<std::string> exempt;
  std::string cutoff;
  std::string torch_backend;
  std::string python;  // full version
  std::string day;     // newest: the day of the resolution

  std::string Hash() const {
    Json json = {{"requirements", requirements},
                 {"overrides", overrides},
                 {"exempt", exempt},
                 {"cutoff", cutoff},
                 {"backend", torch_backend},
                 {"python", python},
                 {"day", day}};
    for (const char* variable : kRegistryVariables) {
      if (const char* value = std::getenv(variable)) json[variable] = value;
    }
    return Sha256(ToLine(json));
  }
};

RuntimeResolver::RuntimeResolver(const SourceCatalog& catalog, Uv uv, Options options)
    : catalog_(catalog),
      uv_(std::move(uv)),
      options_(std::move(options)),
      reader_(options_.python),
      builds_(uv_, options_.cache, options_.python) {}

std::string RuntimeResolver::Tomorrow() const {
  sys_days today = options_.today;
  if (today == sys_days{}) {
    today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  }
  return Midnight(today + std::chrono::days(1));
}

std::string RuntimeResolver::CutoffOf(const RuntimeRequest& request) const {
  // Today ends a month that is not over. RFC 3339 times of one zone sort as text.
  const std::string tomorrow = Tomorrow();
  if (request.policy.day)
    return std::min(Midnight(*request.policy.day + std::chrono::days(1)), tomorrow);
  std::string cutoff;
  for (const Subject* subject : {request.engine, request.library}) {
    if (!subject) continue;
    const std::string end = EndOfMonth(subject->date);
    if (end.empty()) return tomorrow;  // a folder has no date: it counts as new
    cutoff = std::max(cutoff, end);
  }
  return cutoff.empty() ? tomorrow : std::min(cutoff, tomorrow);
}

std::vector<std::string> RuntimeResolver::DeclaredRequirements(
    const RuntimeRequest& request) const {
  std::set<std::string> trees;  // packages on the cell's path, not in the runtime
  for (const std::string& name : catalog_.names()) {
    if (!catalog_.Find(name)->in_runtime) trees.insert(NormalizedName(name));
  }
  for (const Subject* subject : {request.engine, request.library}) {
    if (subject && !subject->tree.empty()) trees.insert(NormalizedName(subject->spec.name));
  }
  std::vector<std::string> declared;
  for (const Subject* subject : {request.engine, request.library}) {
    if (!subject) continue;
    for (const std::string& requirement : subject->requirements) {
      if (!trees.contains(RequirementName(requirement))) AddOnce(requirement, declared);
    }
  }
  return declared;
}

absl::StatusOr<std::string> RuntimeResolver::PythonVersion() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!python_version_) {
    ASSIGN_OR_RETURN(const InterpreterFacts facts, ReadInterpreter(options_.python));
    python_version_ = facts.python;
  }
  return *python_version_;
}

void RuntimeResolver::Relax(const RuntimeRequest& request, Input& input) {
  // The pins of the runtime's base and of the library axis stay. All others are dropped.
  std::vector<std::string> kept = input.base;
  if (request.library && request.library->tree.empty()) {
    kept.insert(kept.end(), request.library->requirements.begin(),
                request.library->requirements.end());
  }
  for (const std::string& relaxed : request.relax) {
    const std::string name = NormalizedName(relaxed);
    const auto pin = std::find_if(kept.begin(), kept.end(), [&](const std::string& requirement) {
      return RequirementName(requirement) == name;
    });
    AddOnce(name, input.relaxed);
    AddOnce(pin == kept.end() ? name : *pin, input.overrides);
  }
  std::sort(input.relaxed.begin(), input.relaxed.end());
  std::sort(input.overrides.begin(), input.overrides.end());
}

absl::StatusOr<RuntimeResolver::Input> RuntimeResolver::InputOf(const RuntimeRequest& request) {
  const RuntimePolicy& policy = request.policy;
  Input input;
  ASSIGN_OR_RETURN(input.python, PythonVersion());
  if (MinorVersion(input.python) != policy.python) {
    return absl::FailedPreconditionError(
        absl::StrCat("runtime ", policy.name, " needs Python ", policy.python, ", but ",
                     options_.python.string(), " is ", input.python));
  }
  const std::string& torch = request.torch.empty() ? policy.torch : request.torch;
  for (const std::string& requirement : policy.base) {
    input.base.push_back(absl::StrReplaceAll(requirement, {{"{torch}", torch}}));
  }
  std::map<std::string, std::string> brought;
  if (!policy.torch_brings.empty() || !policy.torch_dictates.empty()) {
    ASSIGN_OR_RETURN(brought, BroughtByTorch(torch));
  }
  for (const std::string& name : policy.torch_brings) {
    const auto package = brought.find(name);
    if (package == brought.end()) continue;
    input.base.push_back(absl::StrCat(name, "==", package->second));
  }
  input.torch_backend = policy.torch_backend;
  if (policy.policy == PolicyKind::kAsOf) {
    input.cutoff = CutoffOf(request);
    // torch is an axis of its own, so any version may be combined with any month.
    input.exempt = policy.torch_brings;
    input.exempt.push_back("torch");
    for (const auto& [name, version] : brought) {
      if (MatchesAny(policy.torch_dictates, name)) AddOnce(name, input.exempt);
    }
  } else {
    input.day = Tomorrow();
  }
  // In the subjects' own order, as for an installer: with several solutions, the resolver's choice
  // depends on the order.
  input.requirements = DeclaredRequirements(request);
  RETURN_IF_ERROR(CheckRequirements(input.requirements));
  for (const std::string& requirement : request.extra) AddOnce(requirement, input.requirements);
  for (const std::string& requirement : input.base) AddOnce(requirement, input.requirements);
  Relax(request, input);
  return input;
}

absl::StatusOr<SourceBuilds::Resolved> RuntimeResolver::Compile(
    const Input& input, const std::vector<std::string>& requirements, bool offline) const {
  std::vector<std::string> arguments = {
      "pip",         "compile",  "--python",   options_.python.string(),
      "--no-header", "--format", "pylock.toml"};
  if (offline) arguments.emplace_back("--offline");
  const std::vector<std::string> cutoff = CutoffArguments(input.cutoff, input.exempt);
  arguments.insert(arguments.end(), cutoff.begin(), cutoff.end());
  for (const std::string& argument : TorchBackendArguments(input.torch_backend))
    arguments.push_back(argument);
  fs::path folder;
  if (!input.overrides.empty()) {
    ASSIGN_OR_RETURN(folder, CreateTempDirectory(options_.cache / "tmp", "overrides-"));
    RETURN_IF_ERROR(WriteFile(folder / "overrides.txt", absl::StrJoin(input.overrides, "\n")));
    arguments.insert(arguments.end(), {"--overrides", (folder / "overrides.txt").string()});
  }
  absl::StatusOr<SourceBuilds::Resolved> result =
      builds_.Compile(arguments, absl::StrJoin(requirements, "\n"), cutoff);
  if (!folder.empty()) RemoveTree(folder).IgnoreError();
  return result;
}

absl::StatusOr<SourceBuilds::Resolved> RuntimeResolver::CompileUntilSettled(
    const Input& input, const std::vector<std::string>& requirements) const {
  ASSIGN_OR_RETURN(SourceBuilds::Resolved last, Compile(input, requirements));
  for (int again = 0; again < kMostRepeats && last.result.ok(); ++again) {
    // What was just read need not be asked again, unless the answer now depends on more.
    absl::StatusOr<SourceBuilds::Resolved> next = Compile(input, requirements, /*offline=*/true);
    if (!next.ok() || !next->result.ok()) next = Compile(input, requirements);
    RETURN_IF_ERROR(next.status());
    const bool is_settled = next->packages == last.packages;
    last = *std::move(next);
    if (is_settled) break;
  }
  return last;
}

fs::path RuntimeResolver::BroughtFile(const std::string& torch) const {
  return options_.cache / "registry" / absl::StrCat("torch==", torch, "-brings.json");
}

fs::path RuntimeResolver::LockFile(const Input& input) const {
  return options_.cache / "locks" / absl::StrCat(input.Hash(), ".json");
}

absl::StatusOr<std::map<std::string, std::string>> RuntimeResolver::BroughtByTorch(
    const std::string& torch) const {
  const fs::path cached = BroughtFile(torch);
  const auto read = [&]() -> absl::StatusOr<std::map<std::string, std::string>> {
    ASSIGN_OR_RETURN(const Json json, ReadKeptJson(cached, options_.report));
    return json.get<std::map<std::string, std::string>>();
  };
  if (auto kept = read(); !absl::IsNotFound(kept.status())) return kept;
  // Resolutions that run at once mostly share a torch: one of them looks it up, the others wait.
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(cached.string() + ".lock"));
  if (auto kept = read(); !absl::IsNotFound(kept.status())) return kept;
  // Ask for the registry's own build of torch, not the one that runs here: users with an
  // accelerator get its dependencies without declaring them.
  ASSIGN_OR_RETURN(const ProcessResult result,
                   uv_.Run({"pip", "compile", "--python", options_.python.string(), "--no-header",
                            "--format", "pylock.toml", "-"},
                           absl::StrCat("torch==", torch, ",!=", torch, "+cpu\n"),
                           {"UV_FIND_LINKS", "UV_TORCH_BACKEND"}));
  if (!result.ok()) {
    return ErrorOf(result, absl::StrCat("cannot look up the requirements of torch ", torch));
  }
  ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(result.out));
  std::map<std::string, std::string> brought;
  for (const PinnedPackage& package : packages)
    brought[NormalizedName(package.name)] = package.version;
  RETURN_IF_ERROR(WriteKeptFile(cached, ToText(Json(brought))));
  return brought;
}

absl::StatusOr<std::variant<RuntimeLock, NoSolution>> RuntimeResolver::Explain(
    const RuntimeRequest& request, const Input& input, const ProcessResult& failed) const {
  const std::string doing = absl::StrCat("cannot resolve runtime ", request.policy.name);
  const absl::Status error = ErrorOf(failed, doing);
  if (absl::IsUnavailable(error) || absl::IsResourceExhausted(error)) return error;
  // Find out whether the pairing is at fault, or whether nothing can be resolved on this machine.
  ASSIGN_OR_RETURN(const SourceBuilds::Resolved resolved, Compile(input, input.base));
  const ProcessResult& base = resolved.result;
  if (IsNoSolution(base)) {
    return absl::FailedPreconditionError(absl::StrCat(
        doing, ": not even its base (", absl::StrJoin(input.base, ", "),
        ") can be resolved here: ", UvComplaint(base),
        " (say where torch comes from: UV_FIND_LINKS=FOLDER, UV_INDEX=URL, or neither for the "
        "PyTorch index; or choose another --torch)"));
  }
  if (!base.ok()) return ErrorOf(base, doing);
  if (!failed.timed_out) return NoSolutionOf(request, UvComplaint(failed));
  return NoSolution{std::string(error.message()), std::string(error.message()),
                    EndingKind::kTimedOut};
}

NoSolution NoSolutionOf(const RuntimeRequest& request, const std::string& complaint) {
  NoSolution no{complaint, complaint};
  std::vector<std::string> asked;
  for (const Subject* subject : {request.engine, request.library}) {
    if (!subject) continue;
    for (const std::string& requirement : subject->requirements) {
      if (!MentionsPackage(complaint, RequirementName(requirement))) continue;
      asked.push_back(absl::StrCat(NameOf(*subject), " asks ", requirement));
    }
  }
  if (!asked.empty()) absl::StrAppend(&no.message, " (", absl::StrJoin(asked, "; "), ")");
  return no;
}

absl::StatusOr<RuntimeLock> RuntimeResolver::ReadLocked(const RuntimePolicy& policy) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(policy.lock));
  ASSIGN_OR_RETURN(RuntimeLock lock, RuntimeLockFromJson(json, policy.lock.string()));
  ASSIGN_OR_RETURN(const std::string python, PythonVersion());
  if (MinorVersion(python) != lock.python) {
    return absl::FailedPreconditionError(absl::StrCat(policy.lock.string(), " is for Python ",
                                                      lock.python, ", but ",
                                                      options_.python.string(), " is ", python));
  }
  lock.runtime = policy.name;
  lock.policy = std::string(Name(PolicyKind::kLocked));
  return lock;
}

absl::StatusOr<RuntimeLock> RuntimeResolver::ReadExisting(const RuntimePolicy& policy) const {
  ASSIGN_OR_RETURN(const InterpreterFacts facts, ReadInterpreter(policy.interpreter));
  return ExistingLock(policy.name, policy.interpreter, MinorVersion(facts.python), facts.packages);
}

std::string RuntimeResolver::KeyOf(const RuntimeRequest& request) const {
  const RuntimePolicy& policy = request.policy;
  if (policy.policy == PolicyKind::kLocked || policy.policy == PolicyKind::kExisting)
    return policy.name;
  const bool in_runtime = request.library && request.library->tree.empty();
  return Sha256(ToLine(
      Json{{"runtime", policy.name},
           {"torch", request.torch},
           {"declared", DeclaredRequirements(request)},
           {"library", in_runtime ? request.library->requirements : std::vector<std::string>()},
           {"extra", request.extra},
           {"relax", request.relax},
           {"cutoff", policy.policy == PolicyKind::kAsOf ? CutoffOf(request) : ""}}));
}

absl::StatusOr<std::optional<RuntimeLock>> RuntimeResolver::Find(const RuntimeRequest& request) {
  const RuntimePolicy& policy = request.policy;
  if (policy.policy == PolicyKind::kLocked) return ReadLocked(policy);
  if (policy.policy == PolicyKind::kExisting) return ReadExisting(policy);
  const bool needs_torch = !policy.torch_brings.empty() || !policy.torch_dictates.empty();
  const std::string torch = request.torch.empty() ? policy.torch : request.torch;
  if (needs_torch && !ReadKeptJson(BroughtFile(torch), options_.report).ok())
    return std::optional<RuntimeLock>();
  ASSIGN_OR_RETURN(const Input input, InputOf(request));
  const fs::path cached = LockFile(input);
  const absl::StatusOr<Json> json = ReadKeptJson(cached, options_.report);
  if (absl::IsNotFound(json.status())) return std::optional<RuntimeLock>();
  RETURN_IF_ERROR(json.status());
  ASSIGN_OR_RETURN(RuntimeLock lock, RuntimeLockFromJson(*json, cached.string()));
  lock.runtime = policy.name;
  return lock;
}

absl::StatusOr<std::variant<RuntimeLock, NoSolution>> RuntimeResolver::Resolve(
    const RuntimeRequest& request) {
  const RuntimePolicy& policy = request.policy;
  ASSIGN_OR_RETURN(std::optional<RuntimeLock> known, Find(request));
  if (known) return *std::move(known);
  ASSIGN_OR_RETURN(const Input input, InputOf(request));
  const absl::StatusOr<SourceBuilds::Resolved> resolved =
      CompileUntilSettled(input, input.requirements);
  if (absl::IsAborted(resolved.status())) {
    const std::string message(resolved.status().message());
    return NoSolution{message, message, EndingKind::kInstallFailed};
  }
  RETURN_IF_ERROR(resolved.status());
  if (!resolved->result.ok()) return Explain(request, input, resolved->result);
  RuntimeLock lock{.runtime = policy.name,
                   .policy = std::string(Name(policy.policy)),
                   .python = policy.python,
                   .cutoff = input.cutoff,
                   .exempt = input.exempt,
                   .torch_backend = input.torch_backend,
                   .requirements = input.requirements,
                   .relaxed = input.relaxed};
  for (const PinnedPackage& package : resolved->packages) {
    if (package.sha256.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the registry gives no SHA-256 for ", package.name, " ", package.version,
                       ", which a lock needs; use a registry that does (UV_DEFAULT_INDEX)"));
    }
    lock.packages.push_back({NormalizedName(package.name), package.version, package.sha256});
  }
  std::sort(lock.packages.begin(), lock.packages.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  RETURN_IF_ERROR(WriteKeptFile(LockFile(input), ToText(ToJson(lock))));
  return lock;
}

}  // namespace bkm
