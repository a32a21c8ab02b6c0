// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/declared_requirements.h"

#include <algorithm>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kWheel[] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

// Names come from foreign files.
bool IsPlain(const std::string& name) {
  return !name.empty() && name.front() != '.' && !absl::StrContains(name, "/") &&
         name.find('\0') == name.npos;
}

absl::StatusOr<fs::path> SitePackages(const fs::path& environment) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(environment / "lib", error)) {
    if (fs::exists(entry.path() / "site-packages", error)) return entry.path() / "site-packages";
  }
  return absl::InternalError(absl::StrCat("uv made no environment in ", environment.string()));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SentencesOf(const std::string& output) {
  std::vector<std::string> sentences;
  bool was_checked = false;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    absl::string_view text = absl::StripAsciiWhitespace(line);
    was_checked = was_checked || absl::StartsWith(text, "Checked ");
    if (!absl::ConsumePrefix(&text, "The package ") || !absl::StrContains(text, " requires "))
      continue;
    sentences.push_back(absl::StrReplaceAll(text, {{"`", ""}}));
  }
  if (!was_checked)
    return absl::InternalError(
        absl::StrCat("uv pip check checked nothing: ", absl::StripAsciiWhitespace(output)));
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

absl::StatusOr<std::vector<std::string>> ViolatedRequirements(
    const Uv& uv, const fs::path& own_python, const std::string& python,
    const std::vector<DistributionFacts>& distributions) {
  ASSIGN_OR_RETURN(const fs::path folder,
                   CreateTempDirectory(CacheDirectory() / "checks", "metadata-"));
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  const fs::path environment = folder / "env";
  ASSIGN_OR_RETURN(const ProcessResult made, uv.Run({"venv", "--quiet", "--python",
                                                     own_python.string(), environment.string()}));
  RETURN_IF_ERROR(ErrorOf(made, "uv venv"));
  ASSIGN_OR_RETURN(const fs::path packages, SitePackages(environment));
  for (const DistributionFacts& facts : distributions) {
    const std::string name =
        absl::StrCat(absl::StrReplaceAll(facts.name, {{"-", "_"}}), "-", facts.version);
    if (!IsPlain(name)) continue;
    const fs::path info = packages / (name + ".dist-info");
    RETURN_IF_ERROR(CreateDirectories(info));
    RETURN_IF_ERROR(WriteFile(info / "METADATA", facts.metadata + "\n"));
    RETURN_IF_ERROR(WriteFile(info / "WHEEL", kWheel));
  }
  ASSIGN_OR_RETURN(const ProcessResult checked,
                   uv.Run({"pip", "check", "--python-version", python, "--python",
                           (environment / "bin/python").string()}));
  // It fails where it finds something, so its output is the answer.
  return SentencesOf(checked.err);
}

}  // namespace bkm
