// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/source_builds.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/source/download.h"
#include "harness/source/requirement_policy.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr char kBuildProgram[] =
#include "harness/source/wheel_build_py.inc"
    ;

// Real runtimes need one or two.
constexpr size_t kMostBuilds = 20;
constexpr int kSecondsToBuild = 1200;
constexpr int kMibToBuild = 8192;
constexpr off_t kLargestWheel = off_t{1} << 30;
constexpr off_t kLargestAnswer = 1 << 20;

// The content of a regular file that hostile code may have written.
absl::StatusOr<std::string> ReadUntrusted(const fs::path& path, off_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size > limit) {
    return absl::AbortedError(absl::StrCat("it left no readable file ", path.filename().string()));
  }
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + have, content.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  content.resize(have);
  return content;
}

// The end of a program's output in one line, for a message.
std::string LastWords(absl::string_view text) {
  constexpr size_t kShown = 300;
  text = absl::StripAsciiWhitespace(text);
  if (const size_t line = text.rfind('\n'); line != text.npos) text = text.substr(line + 1);
  std::string words;
  for (const char c : text.substr(0, kShown))
    words += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  return words;
}

// Whether an error concerns the package that is built, and not the network or this machine.
bool IsFaultOfPackage(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status);
}

std::vector<std::string> With(std::vector<std::string> arguments,
                              std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
  return arguments;
}

}  // namespace

struct SourceBuilds::Built {
  PinnedPackage package;  // with its source distribution as the only file
  fs::path folder;        // holds the wheel alone
  std::string sha256;     // of the wheel
};

SourceBuilds::SourceBuilds(Uv uv, fs::path cache, fs::path python)
    : uv_(std::move(uv)),
      cache_(std::move(cache)),
      python_(std::move(python)),
      reader_(python_),
      wheels_(cache_ / "wheels") {}

absl::StatusOr<SourceBuilds::Resolved> SourceBuilds::Compile(
    const std::vector<std::string>& arguments, const std::string& requirements,
    const std::vector<std::string>& cutoff) const {
  UvRequest request{.arguments = With(arguments, {"-"}), .input = requirements, .verbose = true};
  std::vector<Built> built;
  Resolved resolved;
  while (true) {
    ASSIGN_OR_RETURN(resolved.result, uv_.Run(request));
    // Without a word, uv takes an older version, or an older version of what requires the package,
    // if that has wheels. It must choose as if it built packages, so every rejected package is
    // looked at.
    std::set<std::string> names;
    for (const std::string& name : LacksWheels(resolved.result)) names.insert(name);
    for (const std::string& name : RejectedPackages(resolved.result)) names.insert(name);
    if (names.empty()) break;
    // Which versions would be chosen? Their own requirements count once they are built.
    UvRequest question = request;
    ProcessResult answer;
    size_t asked = 0;
    do {
      asked = names.size();
      question.from_source.assign(names.begin(), names.end());
      ASSIGN_OR_RETURN(answer, uv_.Run(question));
      const std::vector<std::string> more = LacksWheels(answer);
      names.insert(more.begin(), more.end());
    } while (names.size() > asked);
    if (!answer.ok()) {
      if (resolved.result.ok()) break;
      resolved.result = answer;
      return resolved;
    }
    ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(answer.out));
    const size_t before = built.size();
    for (const PinnedPackage& package : packages) {
      const bool known = std::any_of(built.begin(), built.end(),
                                     [&](const Built& other) { return other.package == package; });
      if (known || package.files.empty() || package.files[0].is_wheel) continue;
      ASSIGN_OR_RETURN(const bool has_wheel, HasWheel(package, cutoff));
      if (has_wheel) continue;
      if (built.size() >= kMostBuilds) {
        return absl::AbortedError(
            absl::StrCat("more than ", kMostBuilds, " packages have only a source distribution"));
      }
      ASSIGN_OR_RETURN(built.emplace_back(), Build(package, cutoff));
      request.find_links.push_back(built.back().folder);
    }
    if (built.size() == before) break;
  }
  if (!resolved.result.ok()) return resolved;
  ASSIGN_OR_RETURN(resolved.packages, reader_.ReadPylock(resolved.result.out));
  for (PinnedPackage& package : resolved.packages) {
    for (const Built& own : built) {
      if (std::count(package.sha256.begin(), package.sha256.end(), own.sha256) == 0) continue;
      if (NormalizedName(package.name) != NormalizedName(own.package.name) ||
          package.version != own.package.version) {
        return absl::AbortedError(absl::StrCat("cannot build ", own.package.name, " ",
                                               own.package.version, ": it builds another version"));
      }
      package = own.package;
      break;
    }
  }
  return resolved;
}

absl::StatusOr<bool> SourceBuilds::HasWheel(const PinnedPackage& package,
                                            const std::vector<std::string>& cutoff) const {
  std::vector<std::string> arguments = {"pip",       "compile",     "--python", python_.string(),
                                        "--no-deps", "--no-header", "--format", "pylock.toml"};
  arguments.insert(arguments.end(), cutoff.begin(), cutoff.end());
  arguments.push_back("-");
  ASSIGN_OR_RETURN(const ProcessResult result,
                   uv_.Run(arguments, absl::StrCat(package.name, "==", package.version, "\n")));
  if (!result.ok() && !IsNoSolution(result))
    return ErrorOf(result, absl::StrCat("cannot look up ", package.name, " ", package.version));
  return result.ok();
}

absl::StatusOr<PinnedPackage> SourceBuilds::SourceOf(const std::string& pin,
                                                     const std::vector<std::string>& cutoff) const {
  const std::string what = pin.substr(0, pin.find(' '));
  std::vector<std::string> arguments = {"pip",       "compile",     "--python", python_.string(),
                                        "--no-deps", "--no-header", "--format", "pylock.toml"};
  arguments.insert(arguments.end(), cutoff.begin(), cutoff.end());
  arguments.push_back("-");
  ASSIGN_OR_RETURN(const ProcessResult result, uv_.LookUp(arguments, what + "\n"));
  if (!result.ok()) return ErrorOf(result, absl::StrCat("cannot look up ", what));
  ASSIGN_OR_RETURN(std::vector<PinnedPackage> packages, reader_.ReadPylock(result.out));
  if (packages.size() == 1 && packages[0].files.size() == 1 && !packages[0].files[0].is_wheel &&
      absl::StrContains(pin, packages[0].files[0].sha256))
    return packages[0];
  return absl::AbortedError(
      absl::StrCat("the registry has neither a wheel nor a source distribution of ", what,
                   " with a hash of the lock"));
}

absl::StatusOr<ProcessResult> SourceBuilds::Install(const std::vector<std::string>& arguments,
                                                    std::vector<std::string> pins,
                                                    const std::vector<std::string>& cutoff) const {
  UvRequest request{.arguments = With(arguments, {"-r", "-"})};
  while (true) {
    request.input = absl::StrJoin(pins, "\n") + "\n";
    ASSIGN_OR_RETURN(ProcessResult result, uv_.Run(request));
    const std::vector<std::string> lacking = LacksWheels(result);
    const size_t before = request.find_links.size();
    for (const std::string& name : lacking) {
      const auto pin = std::find_if(pins.begin(), pins.end(), [&](const std::string& line) {
        return NormalizedName(line.substr(0, line.find("=="))) == name;
      });
      if (pin == pins.end() || request.find_links.size() >= kMostBuilds) continue;
      ASSIGN_OR_RETURN(const PinnedPackage package, SourceOf(*pin, cutoff));
      ASSIGN_OR_RETURN(const Built built, Build(package, cutoff));
      if (std::count(request.find_links.begin(), request.find_links.end(), built.folder) > 0)
        continue;
      request.find_links.push_back(built.folder);
      *pin = absl::StrCat(package.name, "==", package.version, " --hash=sha256:", built.sha256);
    }
    if (request.find_links.size() == before) return result;
  }
}

absl::StatusOr<SourceBuilds::Built> SourceBuilds::Build(
    const PinnedPackage& package, const std::vector<std::string>& cutoff) const {
  const PinnedFile& file = package.files[0];
  const std::string what = absl::StrCat("cannot build ", package.name, " ", package.version,
                                        ", which has only a source distribution");
  if (uv_.sandbox().worker.empty())
    return absl::AbortedError(absl::StrCat(what, ": this command builds no packages"));
  if (file.url.empty() || file.sha256.empty())
    return absl::AbortedError(absl::StrCat(what, ": the registry gives no address or hash"));
  const std::string key =
      absl::StrCat(file.sha256.substr(0, 32), "-", Sha256(python_.string()).substr(0, 6), "-",
                   uv_.sandbox().level);
  const auto failure = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = failed_.find(key);
    return known == failed_.end() ? absl::OkStatus() : known->second;
  };
  absl::StatusOr<fs::path> folder = wheels_.GetOrMake(key, [&](const fs::path& made) {
    RETURN_IF_ERROR(failure());
    ASSIGN_OR_RETURN(const fs::path work, CreateTempDirectory(cache_ / "tmp", "build-"));
    absl::Status status = Make(package, cutoff, work, made);
    RemoveTree(work).IgnoreError();
    if (!IsFaultOfPackage(status)) return status;
    status = absl::AbortedError(absl::StrCat(what, ": ", std::string(status.message())));
    const std::lock_guard<std::mutex> lock(mutex_);
    return failed_[key] = status;
  });
  if (!folder.ok()) return folder.status();
  Built built{.package = package, .folder = *folder};
  for (const fs::directory_entry& entry : fs::directory_iterator(*folder)) {
    ASSIGN_OR_RETURN(built.sha256, Sha256OfFile(entry.path()));
  }
  return built;
}

absl::Status SourceBuilds::Make(const PinnedPackage& package,
                                const std::vector<std::string>& cutoff, const fs::path& work,
                                const fs::path& folder) const {
  const fs::path sdist = work / "sdist";
  RETURN_IF_ERROR(Download(package.files[0], sdist));
  ASSIGN_OR_RETURN(std::vector<std::string> requirements, reader_.ReadBuildRequirements(sdist));
  fs::path backends = work / "backends";
  RETURN_IF_ERROR(InstallBackends(requirements, cutoff, backends));
  // Writable for whatever user the sandbox runs as. Only we can enter the folder above it.
  const fs::path out = work / "out";
  RETURN_IF_ERROR(CreateDirectories(out));
  fs::permissions(out, fs::perms::all);
  RETURN_IF_ERROR(Run("requires", sdist, out, backends));
  ASSIGN_OR_RETURN(const std::string text, ReadUntrusted(out / "requires.json", kLargestAnswer));
  const absl::StatusOr<Json> more = ParseJson(text, "requires.json");
  const bool is_list =
      more.ok() && more->is_array() &&
      std::all_of(more->begin(), more->end(), [](const Json& item) { return item.is_string(); });
  if (!is_list) return absl::AbortedError("its build backend names no list of requirements");
  if (!more->empty()) {
    for (const Json& item : *more) requirements.push_back(item.get<std::string>());
    backends = work / "more-backends";
    RETURN_IF_ERROR(InstallBackends(requirements, cutoff, backends));
  }
  RETURN_IF_ERROR(Run("wheel", sdist, out, backends));

  std::vector<fs::path> wheels;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "wheel", error))
    wheels.push_back(entry.path());
  if (wheels.size() != 1 || wheels[0].extension() != ".whl")
    return absl::AbortedError("its build backend made no wheel");
  const std::string name = wheels[0].filename().string();
  if (NormalizedName(name.substr(0, name.find('-'))) != NormalizedName(package.name))
    return absl::AbortedError("its build backend made a wheel of another package");
  ASSIGN_OR_RETURN(const std::string wheel, ReadUntrusted(wheels[0], kLargestWheel));
  return WriteFile(folder / name, wheel);
}

absl::Status SourceBuilds::Download(const PinnedFile& file, const fs::path& target) const {
  RETURN_IF_ERROR(bkm::Download(python_, file.url, target));
  ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(target));
  if (sha256 == file.sha256) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(file.url, " does not have the registry's hash"));
}

absl::Status SourceBuilds::InstallBackends(const std::vector<std::string>& requirements,
                                           const std::vector<std::string>& cutoff,
                                           const fs::path& folder) const {
  RETURN_IF_ERROR(CheckRequirements(requirements));
  RETURN_IF_ERROR(CreateDirectories(folder));
  if (requirements.empty()) return absl::OkStatus();
  // Into a folder and not an environment: uv would start the environment's Python, which runs code
  // of the packages in it.
  std::vector<std::string> arguments = {"pip",         "install", "--python", python_.string(),
                                        "--link-mode", "copy",    "--target", folder.string()};
  arguments.insert(arguments.end(), cutoff.begin(), cutoff.end());
  arguments.insert(arguments.end(), {"-r", "-"});
  ASSIGN_OR_RETURN(const ProcessResult result, InstallAnew(folder, [&] {
                     return uv_.Run(arguments, absl::StrJoin(requirements, "\n") + "\n");
                   }));
  if (result.ok()) return absl::OkStatus();
  const absl::Status status = ErrorOf(result, "cannot install what builds it");
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) return status;
  return absl::AbortedError(status.message());
}

absl::Status SourceBuilds::Run(const std::string& command, const fs::path& sdist,
                               const fs::path& work, const fs::path& backends) const {
  std::error_code error;
  const fs::path prefix = fs::canonical(python_, error).parent_path().parent_path();
  const std::map<std::string, std::string> environment = {
      {"PATH", absl::StrCat((backends / "bin").string(), ":/usr/local/bin:/usr/bin:/bin")},
      {"HOME", work.string()},
      {"TMPDIR", work.string()},
      {"PYTHONPATH", backends.string()},
      {"LC_ALL", "C.UTF-8"},
      {"SOURCE_DATE_EPOCH", "315532800"}};  // the first day of a zip file's calendar
  Command confined;
  confined.argv = {uv_.sandbox().worker.string(), "confine", "--sandbox", uv_.sandbox().level};
  std::vector<fs::path> readable = {sdist, backends};
  if (prefix != "/usr") readable.push_back(prefix);  // a sandbox shows the system's programs anyway
  for (const fs::path& path : readable)
    confined.argv.insert(confined.argv.end(), {"--read", path.string()});
  confined.argv.insert(confined.argv.end(), {"--write", work.string()});
  for (const auto& [name, value] : environment)
    confined.argv.insert(confined.argv.end(), {"--env", absl::StrCat(name, "=", value)});
  confined.argv.insert(confined.argv.end(),
                       {"--timeout", absl::StrCat(kSecondsToBuild), "--memory-mib",
                        absl::StrCat(kMibToBuild), "--", python_.string(), "-s", "-S", "-B", "-c",
                        kBuildProgram, command, sdist.string(), work.string(), backends.string()});
  confined.exact_env = true;
  confined.set_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  confined.directory = "/";
  confined.timeout = std::chrono::seconds(kSecondsToBuild + 60);
  ASSIGN_OR_RETURN(ProcessResult result, RunCommand(confined));
  // Killed once, it may be the machine's doing; killed again, it is the backend's.
  if (result.exit_code == 128 + SIGKILL) {
    ASSIGN_OR_RETURN(result, RunCommand(confined));
  }
  if (result.ok()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("its build backend failed",
                                         result.timed_out ? " to finish in time" : "", ": ",
                                         LastWords(result.err)));
}

}  // namespace bkm
