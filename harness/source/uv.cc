// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/uv.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/source/requirement_policy.h"
#include "harness/source/source_catalog.h"

extern char** environ;

namespace bkm {
namespace fs = std::filesystem;

namespace {

// uv's hint when it was told to work offline.
constexpr absl::string_view kOffline = "unavailable because the network was disabled";

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// uv's chain of causes, outermost first, each in one line.
std::vector<std::string> Causes(absl::string_view text) {
  std::vector<std::string> causes;
  bool said = false;  // uv prints its progress before the first cause
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    bool begins = false;
    for (absl::string_view mark :
         {"error: ", "cause: ", "Caused by: ", "hint: ", "× ", "╰─▶ ", "├─▶ "}) {
      begins |= absl::ConsumePrefix(&line, mark);
    }
    absl::ConsumePrefix(&line, "│ ");
    line = absl::StripAsciiWhitespace(line);
    said |= begins;
    if (absl::StartsWith(line, "DEBUG ") || absl::StartsWith(line, "TRACE ")) continue;
    if (line.empty() || !said || absl::StartsWith(line, "No solution found when resolving"))
      continue;
    if (begins || causes.empty()) {
      causes.emplace_back(line);
    } else {
      absl::StrAppend(&causes.back(), " ", line);
    }
  }
  return causes;
}

// Whether `cause` is one of uv's own sentences about a failed transfer. The text of a package, a
// build or an option that merely contains such words is not.
bool IsFailedTransfer(absl::string_view cause) {
  return absl::StartsWith(cause, "Failed to fetch") ||
         absl::StartsWith(cause, "Failed to download") ||
         absl::StartsWith(cause, "Request failed") ||
         absl::StartsWith(cause, "error sending request") || absl::StrContains(cause, kOffline);
}

// No resolution or installation of real packages takes as long. Requirements can be written that
// take a resolver for ever.
constexpr std::chrono::minutes kLongestResolution(30);
constexpr std::chrono::minutes kLongestInstallation(240);

bool IsPackageSource(absl::string_view variable) {
  constexpr absl::string_view kNames[] = {
      // Who and where the user is.
      "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "XDG_CONFIG_HOME",
      "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "XDG_DATA_HOME",
      // Where packages come from.
      "UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_NO_CONFIG", "UV_DEFAULT_INDEX", "UV_INDEX",
      "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_INDEX_STRATEGY",
      "UV_TORCH_BACKEND", "UV_OFFLINE", "UV_LINK_MODE", "UV_NO_CACHE",
      // How to reach the registry.
      "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_INSECURE_HOST", "UV_HTTP_TIMEOUT",
      "UV_HTTP_CONNECT_TIMEOUT", "UV_HTTP_RETRIES", "UV_REQUEST_TIMEOUT", "UV_CONCURRENT_DOWNLOADS",
      "UV_CONCURRENT_INSTALLS", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "HTTP_PROXY",
      "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
      // Credentials.
      "NETRC", "UV_KEYRING_PROVIDER", "UV_CREDENTIALS_DIR", "UV_S3_ENDPOINT_URL",
      "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"};
  if (std::find(std::begin(kNames), std::end(kNames), variable) != std::end(kNames)) return true;
  return absl::StartsWith(variable, "LC_") ||
         (absl::StartsWith(variable, "UV_INDEX_") &&
          (absl::EndsWith(variable, "_USERNAME") || absl::EndsWith(variable, "_PASSWORD")));
}

// Whether uv would build packages for this subcommand unless it is told not to.
bool MayBuild(const std::vector<std::string>& arguments) {
  return arguments.size() >= 2 && arguments[0] == "pip" &&
         (arguments[1] == "compile" || arguments[1] == "install" || arguments[1] == "sync");
}

bool Installs(const std::vector<std::string>& arguments) {
  return MayBuild(arguments) && arguments[1] != "compile";
}

// Gives the packages `names` metadata, so that uv needs not build them to know it. The settings
// file `file` takes the place of the project's, or of the one that the user names.
absl::Status AssumeMetadata(const std::vector<std::string>& names, const fs::path& file,
                            Command& command) {
  std::string text;
  std::map<std::string, std::string>& environment = command.set_env;
  if (const auto own = environment.find("UV_CONFIG_FILE"); own != environment.end()) {
    ASSIGN_OR_RETURN(text, ReadFile(own->second));
    own->second = file.string();
  } else if (environment.erase("UV_NO_CONFIG") > 0) {
    environment["UV_CONFIG_FILE"] = file.string();
  }
  for (const std::string& name : names)
    absl::StrAppend(&text, "\n[[dependency-metadata]]\nname = \"", name,
                    "\"\nrequires-dist = []\n");
  command.directory = file.parent_path();
  return WriteFile(file, text);
}

}  // namespace

absl::StatusOr<Uv> Uv::Find() {
  if (IsSet("BKM_UV")) return Uv(std::getenv("BKM_UV"));
  std::error_code error;
  for (absl::string_view folder :
       absl::StrSplit(IsSet("PATH") ? std::getenv("PATH") : "", ':', absl::SkipEmpty())) {
    const fs::path program = fs::path(std::string(folder)) / "uv";
    if (fs::is_regular_file(program, error)) return Uv(program);
  }
  const fs::path own = CacheDirectory() / "uv-env" / "bin" / "uv";
  if (fs::is_regular_file(own, error)) return Uv(own);
  return absl::FailedPreconditionError(
      "uv is not installed: run tools/bkm, which installs it, or pip install uv, or set BKM_UV");
}

std::map<std::string, std::string> PackageSourceEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const absl::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == text.npos || !IsPackageSource(text.substr(0, equals))) continue;
    environment.emplace(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return environment;
}

absl::StatusOr<ProcessResult> Uv::Run(const std::vector<std::string>& arguments, std::string input,
                                      std::vector<std::string> unset_env) const {
  return Run(
      {.arguments = arguments, .input = std::move(input), .unset_env = std::move(unset_env)});
}

absl::StatusOr<ProcessResult> Uv::Run(const UvRequest& request) const {
  Command command;
  command.argv = {program_.string()};
  command.argv.insert(command.argv.end(), request.arguments.begin(), request.arguments.end());
  command.input = request.input;
  const bool resolves = request.arguments.size() > 1 && request.arguments[1] == "compile";
  command.timeout = resolves ? kLongestResolution : kLongestInstallation;
  command.in_own_group = false;
  command.directory = "/";  // hides a pyproject.toml or uv.toml of the current folder
  command.exact_env = true;
  command.set_env = PackageSourceEnvironment();
  for (const std::string& name : request.unset_env) command.set_env.erase(name);
  fs::path settings;
  if (request.verbose) command.argv.push_back("-v");
  if (MayBuild(request.arguments)) {
    // Where the subcommand ends: `-` and `-r -` stay last.
    const auto options = command.argv.begin() + 3;
    if (request.from_source.empty()) {
      command.argv.insert(options, {"--no-build", "--no-sources"});
    } else {
      ASSIGN_OR_RETURN(settings, CreateTempDirectory(CacheDirectory() / "tmp", "uv-"));
      RETURN_IF_ERROR(AssumeMetadata(request.from_source, settings / "uv.toml", command));
      std::vector<std::string> more = {"--no-sources", "--only-binary", ":all:"};
      for (const std::string& name : request.from_source)
        more.insert(more.end(), {"--no-binary", name});
      command.argv.insert(options, more.begin(), more.end());
    }
  }
  const fs::path temporaries = CacheDirectory() / "tmp" / "uv";
  RETURN_IF_ERROR(CreateDirectories(temporaries));
  for (const fs::path& folder : request.find_links) {
    std::string& links = command.set_env["UV_FIND_LINKS"];
    absl::StrAppend(&links, links.empty() ? "" : ",", folder.string());
  }
  command.set_env["NO_COLOR"] = "1";
  command.set_env["TMPDIR"] = temporaries;
  command.set_env["UV_NO_PROGRESS"] = "1";
  command.set_env["UV_PYTHON_DOWNLOADS"] = "never";
  command.may_run_again = !Installs(request.arguments);
  absl::StatusOr<ProcessResult> result = RunCommand(command);
  if (!settings.empty()) RemoveTree(settings).IgnoreError();
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no uv at ", program_.string(), ": run tools/bkm, which installs it, or set BKM_UV"));
  }
  return result;
}

absl::StatusOr<ProcessResult> Uv::LookUp(const std::vector<std::string>& arguments,
                                         std::string input) const {
  UvRequest request{.arguments = arguments, .input = std::move(input)};
  while (true) {
    ASSIGN_OR_RETURN(ProcessResult result, Run(request));
    const std::vector<std::string> names = LacksWheels(result);
    const size_t before = request.from_source.size();
    for (const std::string& name : names) {
      if (std::find(request.from_source.begin(), request.from_source.end(), name) ==
          request.from_source.end())
        request.from_source.push_back(name);
    }
    if (request.from_source.size() == before) return result;
  }
}

std::vector<std::string> LacksWheels(const ProcessResult& result) {
  std::set<std::string> names;
  if (result.ok()) return {};
  constexpr absl::string_view kHint = "Wheels are required for `";
  const absl::string_view text = result.err;
  for (size_t at = text.find(kHint); at != text.npos; at = text.find(kHint, at + 1)) {
    const absl::string_view rest = text.substr(at + kHint.size());
    const std::string name = NormalizedName(rest.substr(0, rest.find('`')));
    if (IsPackageName(name)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> RejectedPackages(const ProcessResult& result) {
  constexpr absl::string_view kSearching = "DEBUG Searching for a compatible version of ";
  constexpr absl::string_view kSelecting = "DEBUG Selecting: ";
  std::set<std::string> names;
  std::string searched;  // not selected yet
  for (absl::string_view line : absl::StrSplit(result.err, '\n')) {
    if (absl::ConsumePrefix(&line, kSearching)) {
      if (!searched.empty()) names.insert(searched);
      searched = NormalizedName(line.substr(0, line.find_first_of(" [(")));
    } else if (absl::ConsumePrefix(&line, kSelecting) &&
               NormalizedName(line.substr(0, line.find_first_of("=["))) == searched) {
      searched.clear();
    }
  }
  if (!searched.empty()) names.insert(searched);
  std::erase_if(names, [](const std::string& name) { return !IsPackageName(name); });
  return {names.begin(), names.end()};
}

bool IsNoSolution(const ProcessResult& result) {
  // Offline, uv also prints "No solution found" for a package that is merely not in its cache.
  return result.exit_code == 1 && absl::StrContains(result.err, "No solution found") &&
         !absl::StrContains(result.err, kOffline);
}

std::string UvComplaint(const ProcessResult& result) {
  std::vector<std::string> causes = Causes(result.err);
  if (causes.empty()) return absl::StrCat("uv ended with ", result.exit_code);
  // For a failed transfer, keep the URL and the last cause; the layers between add nothing.
  const auto fetch = std::find_if(causes.begin(), causes.end(), [](const std::string& cause) {
    return absl::StartsWith(cause, "Failed to fetch") ||
           absl::StartsWith(cause, "Failed to download");
  });
  if (fetch != causes.end() && causes.end() - fetch > 2) causes.erase(fetch + 1, causes.end() - 1);
  return absl::StrJoin(causes, ": ");
}

absl::Status ErrorOf(const ProcessResult& result, absl::string_view doing) {
  if (result.ok()) return absl::OkStatus();
  if (result.timed_out) {
    return absl::DeadlineExceededError(
        absl::StrCat(doing, ": uv did not finish within its time limit"));
  }
  const std::string what = absl::StrCat(doing, ": ", UvComplaint(result));
  if (result.exit_code > 128) return absl::UnavailableError(what);  // a signal ended it
  if (absl::StrContains(result.err, "No space left on device") ||
      absl::StrContains(result.err, "(os error 28)")) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " (free some space, or set BKM_CACHE and UV_CACHE_DIR)"));
  }
  const std::vector<std::string> causes = Causes(result.err);
  if (std::any_of(causes.begin(), causes.end(), IsFailedTransfer)) {
    return absl::UnavailableError(
        absl::StrCat(what, " (check the network and the registry: UV_DEFAULT_INDEX, HTTPS_PROXY)"));
  }
  if (IsNoSolution(result)) return absl::NotFoundError(what);
  return absl::InternalError(what);
}

absl::StatusOr<ProcessResult> InstallAnew(
    const fs::path& folder, const std::function<absl::StatusOr<ProcessResult>()>& install) {
  constexpr int kTries = 3;
  absl::StatusOr<ProcessResult> result = install();
  for (int tries = 1; tries < kTries && result.ok() && result->exit_code == 128 + SIGKILL;
       ++tries) {
    RETURN_IF_ERROR(RemoveTree(folder));
    RETURN_IF_ERROR(CreateDirectories(folder));
    result = install();
  }
  return result;
}

absl::Status InstallationStatus(const ProcessResult& result, absl::string_view doing) {
  const absl::Status status = ErrorOf(result, doing);
  const bool of_package = absl::IsNotFound(status) || absl::IsInternal(status);
  // "(os error 13)": the operating system refused something.
  if (!of_package || absl::StrContains(result.err, "(os error ")) return status;
  return absl::AbortedError(status.message());
}

std::vector<std::string> TorchBackendArguments(absl::string_view backend) {
  if (backend.empty()) return {};
  for (const char* variable : {"UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
                               "UV_DEFAULT_INDEX", "UV_TORCH_BACKEND"}) {
    if (IsSet(variable)) return {};
  }
  return {"--torch-backend", std::string(backend)};
}

std::vector<std::string> CutoffArguments(const std::string& cutoff,
                                         const std::vector<std::string>& exempt) {
  if (cutoff.empty()) return {};
  std::vector<std::string> arguments = {"--exclude-newer", cutoff};
  for (const std::string& name : exempt)
    arguments.insert(arguments.end(), {"--exclude-newer-package", absl::StrCat(name, "=false")});
  return arguments;
}

}  // namespace bkm
