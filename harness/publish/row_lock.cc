// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/row_lock.h"

#include <sys/utsname.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/run_directory.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Indexes of the torch builds that are not on PyPI, by backend, as in uv's --torch-backend.
constexpr char kTorchIndex[] = "https://download.pytorch.org/whl/";

std::string Toml(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppend(&quoted, absl::StrFormat("\\u%04x", static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The environment marker of this kind of machine, for which the lock's files were chosen.
std::string MachineMarker(const std::string& python) {
  struct utsname machine = {};
  ::uname(&machine);
  return absl::StrCat("sys_platform == 'linux' and platform_machine == '", machine.machine,
                      "' and python_version == '", python, "'");
}

bool IsHere(absl::string_view url) {
  return !absl::StartsWith(url, "https://") && !absl::StartsWith(url, "http://");
}

// The file name in a URL.
std::string FileName(absl::string_view url) {
  return std::string(url.substr(url.rfind('/') == url.npos ? 0 : url.rfind('/') + 1));
}

// The URL, in the index of its backend, of a torch build that was installed from a local folder;
// empty if the index is unknown.
std::string UrlOfTorch(const PinnedPackage& package, const PinnedFile& file,
                       const std::string& backend) {
  const bool is_build_of_backend =
      !backend.empty() && absl::EndsWith(package.version, absl::StrCat("+", backend));
  if (!is_build_of_backend) return "";
  return absl::StrCat(kTorchIndex, backend, "/",
                      absl::StrReplaceAll(FileName(file.url), {{"+", "%2B"}}));
}

// One [[packages]] table for files of a registry. `measured` has the hashes that were installed;
// empty allows all files.
absl::StatusOr<std::string> PackageText(const Pin& pin, const PinAnswer& answer,
                                        const std::vector<std::string>& measured,
                                        const std::string& backend) {
  if (!answer.package)
    return absl::NotFoundError(absl::StrCat(pin.text(), " is no longer in the registry"));
  std::string index;
  std::vector<std::string> wheels, sources;
  for (const PinnedFile& file : answer.package->files) {
    const bool was_measured = measured.empty() || std::find(measured.begin(), measured.end(),
                                                            file.sha256) != measured.end();
    if (!was_measured) continue;
    std::string url = file.url;
    if (IsHere(url)) {
      url = pin.name == "torch" ? UrlOfTorch(*answer.package, file, backend) : "";
      if (url.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat(pin.text(), " comes from a local folder, and its index is unknown"));
      }
      index = absl::StrCat(kTorchIndex, backend);
    }
    (file.is_wheel ? wheels : sources)
        .push_back(absl::StrCat("{ url = ", Toml(url), ", hashes = { sha256 = ", Toml(file.sha256),
                                " } }"));
  }
  if (wheels.empty() && sources.empty()) {
    return absl::NotFoundError(
        absl::StrCat(pin.text(), ": the registry no longer has any of the measured files"));
  }
  std::string text = absl::StrCat("\n[[packages]]\nname = ", Toml(pin.name),
                                  "\nversion = ", Toml(pin.version), "\n");
  if (!index.empty()) absl::StrAppend(&text, "index = ", Toml(index), "\n");
  if (!sources.empty()) absl::StrAppend(&text, "sdist = ", sources[0], "\n");
  if (!wheels.empty())
    absl::StrAppend(&text, "wheels = [\n    ", absl::StrJoin(wheels, ",\n    "), ",\n]\n");
  return text;
}

std::string CommitText(const std::string& name, const std::string& url, const std::string& commit) {
  return absl::StrCat("\n[[packages]]\nname = ", Toml(name),
                      "\nvcs = { type = \"git\", url = ", Toml(url), ", commit-id = ", Toml(commit),
                      " }\n");
}

// The engine, and the library unless the runtime installs it.
std::vector<SubjectSpec> SubjectsOf(const PublishedRow& row) {
  std::vector<std::string> texts = {row.engine_version.subject};
  const EngineKind* kind = FindEngineKind(row.engine);
  if (!kind || !kind->library_in_runtime) texts.push_back(row.library_to.subject);
  std::vector<SubjectSpec> subjects;
  for (const std::string& text : texts) {
    if (absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text); spec.ok())
      subjects.push_back(*std::move(spec));
  }
  return subjects;
}

absl::StatusOr<std::string> RepositoryUrl(const SourceCatalog& catalog, const std::string& name) {
  const Source* source = catalog.Find(name);
  if (source && !source->git.empty()) return source->git;
  return absl::FailedPreconditionError(
      absl::StrCat("the repository of '", name,
                   "' is unknown: name the matrix that defines it with --matrix FILE"));
}

}  // namespace

absl::Status LockFinder::ReadCache() {
  cache_was_read_ = true;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_ / "locks", error)) {
    if (entry.path().extension() != ".json") continue;
    // A damaged lock counts as missing, and so does one of an older format.
    if (absl::IsDataLoss(VerifySealedFile(entry.path()))) continue;
    const absl::StatusOr<Json> json = ReadJsonFile(entry.path());
    if (!json.ok()) continue;
    absl::StatusOr<RuntimeLock> lock = RuntimeLockFromJson(*json, entry.path().string());
    if (!lock.ok()) continue;
    const std::string key = lock->Key();
    found_.emplace(key, *std::move(lock));
  }
  return absl::OkStatus();
}

absl::StatusOr<RuntimeLock> LockFinder::Find(const std::string& key) {
  for (const RunEvidence& run : runs_) {
    if (found_.contains(key)) break;
    absl::StatusOr<RuntimeLock> lock = RunDirectory(run.root).ReadLock(key);
    if (lock.ok()) found_.emplace(key, *std::move(lock));
  }
  if (!found_.contains(key) && !cache_was_read_) RETURN_IF_ERROR(ReadCache());
  const auto it = found_.find(key);
  if (it != found_.end()) return it->second;
  return absl::NotFoundError(
      absl::StrCat("the lock ", key.substr(0, 12), " is neither in a run nor in the cache"));
}

std::string PylockName(const PublishedRow& row) { return absl::StrCat("pylock.", row.id, ".toml"); }

absl::StatusOr<std::string> PylockText(const PublishedRow& row, const RuntimeLock& lock,
                                       const SourceCatalog& catalog, Registry& registry) {
  std::map<Pin, std::vector<std::string>> hashes;
  for (const LockedPackage& package : lock.packages) {
    if (package.sha256.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("runtime ", lock.runtime, " is an existing environment: ", package.name, " ",
                       package.version, " has no hash"));
    }
    hashes[{package.name, package.version}] = package.sha256;
  }
  std::map<std::string, std::string> texts;  // by name
  for (const SubjectSpec& subject : SubjectsOf(row)) {
    const std::string name = NormalizedName(subject.name);
    if (subject.source == SourceKind::kPypi) {
      hashes[{name, subject.revision}] = {};
    } else {
      ASSIGN_OR_RETURN(const std::string url, RepositoryUrl(catalog, subject.name));
      texts[name] = CommitText(name, url, subject.revision);
    }
  }
  std::vector<Pin> pins;
  for (const auto& [pin, measured] : hashes) pins.push_back(pin);
  ASSIGN_OR_RETURN(const auto answers, registry.LookUp(pins, lock.torch_backend));
  for (const auto& [pin, measured] : hashes) {
    ASSIGN_OR_RETURN(texts[pin.name],
                     PackageText(pin, answers.at(pin), measured, lock.torch_backend));
  }
  std::string text =
      absl::StrCat("lock-version = \"1.0\"\nenvironments = [", Toml(MachineMarker(lock.python)),
                   "]\nrequires-python = ", Toml(absl::StrCat("==", lock.python, ".*")),
                   "\ncreated-by = \"bkm\"\n");
  if (!row.sandbox.empty())
    absl::StrAppend(&text, "\n[tool.bkm]\nsandbox = ", Toml(row.sandbox), "\n");
  for (const auto& [name, package] : texts) absl::StrAppend(&text, package);
  return text;
}

std::string ConstraintsText(const PublishedRow& row, const RuntimeLock& lock,
                            const SourceCatalog& catalog) {
  std::map<std::string, std::string> lines;  // by name
  for (const LockedPackage& package : lock.packages)
    lines[package.name] = absl::StrCat(
        "==", package.name == "torch" ? package.version.substr(0, package.version.find('+'))
                                      : package.version);
  for (const SubjectSpec& subject : SubjectsOf(row)) {
    const std::string name = NormalizedName(subject.name);
    if (subject.source == SourceKind::kPypi) {
      lines[name] = absl::StrCat("==", subject.revision);
      continue;
    }
    const absl::StatusOr<std::string> url = RepositoryUrl(catalog, subject.name);
    if (!url.ok()) return "";
    lines[name] = absl::StrCat(" @ git+", *url, "@", subject.revision);
  }
  return absl::StrCat("# ", row.id, ", measured ", row.measured, "\n",
                      absl::StrJoin(lines, "\n", absl::PairFormatter("")), "\n");
}

std::vector<std::string> InstallLines(const PublishedRow& row, const SourceCatalog& catalog) {
  std::vector<std::string> wanted;
  for (const SubjectSpec& subject : SubjectsOf(row)) {
    if (subject.source == SourceKind::kPypi) {
      wanted.push_back(absl::StrCat("'", subject.name, "==", subject.revision, "'"));
      continue;
    }
    const absl::StatusOr<std::string> url = RepositoryUrl(catalog, subject.name);
    if (!url.ok()) return {};
    wanted.push_back(absl::StrCat("'", subject.name, " @ git+", *url, "@", subject.revision, "'"));
  }
  const EngineKind* kind = FindEngineKind(row.engine);
  if (kind && kind->library_in_runtime) {
    if (const absl::StatusOr<SubjectSpec> library = ParseSubjectSpec(row.library_to.subject);
        library.ok())
      wanted.push_back(absl::StrCat("'", library->name, "==", library->revision, "'"));
  }
  if (!row.torch.empty()) wanted.push_back(absl::StrCat("'torch==", row.torch, "'"));
  const std::string by_name = absl::StrCat("pip install ", absl::StrJoin(wanted, " "));
  if (row.pylock.empty()) return {by_name};
  return {absl::StrCat("uv venv --python ", row.python), absl::StrCat("uv pip sync ", row.pylock),
          absl::StrCat("# or, with whatever else fits today: ", by_name)};
}

}  // namespace bkm
