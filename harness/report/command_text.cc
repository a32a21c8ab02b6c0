// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/command_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/base/shown_text.h"
#include "harness/model/dimension.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

void Add(std::string& command, const std::string& flag, const std::string& value) {
  absl::StrAppend(&command, " ", flag, " ", ShellWord(value));
}

// A fault is planted in the pairings of the self-test, and nowhere else.
std::string SelftestCommandOf(const Cell& cell) {
  // The mutants of a pair follow from its files and the seed; the lines are recorded for them.
  const bool is_catalogued = std::none_of(
      cell.plant.begin(), cell.plant.end(),
      [](const std::string& plant) { return plant == kRecordLines || IsMutant(plant); });
  std::string command = is_catalogued ? "bkm selftest --all" : "bkm selftest --mutate";
  if (is_catalogued) {
    for (const std::string& fault : cell.plant) Add(command, "--fault", fault);
  }
  Add(command, "--engine", cell.engine);
  Add(command, "--attention", cell.probe.attention);
  Add(command, "--model", cell.probe.model);
  return command;
}

bool IsShownLine(const std::string& text) {
  return ShownText(text) == text && text.find('\n') == std::string::npos;
}

}  // namespace

std::string ShellWord(const std::string& text) {
  bool plain = !text.empty();
  for (const char c : text) {
    plain = plain && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      std::string("@%+=:,./-_").find(c) != std::string::npos);
  }
  if (plain) return text;
  if (IsShownLine(text)) return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
  // Characters that no terminal shows, as bash, zsh and POSIX 2024 take them.
  std::string word = "$'";
  for (const char c : text) {
    const bool kept = absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == ' ';
    if (kept && c != '\'' && c != '\\') {
      word += c;
    } else {
      absl::StrAppendFormat(&word, "\\%03o", static_cast<unsigned char>(c));
    }
  }
  return word + "'";
}

std::string CommandOf(const Cell& cell) {
  if (!cell.plant.empty()) return SelftestCommandOf(cell);
  std::string command = "bkm run";
  Add(command, "--engine",
      cell.engine_subject ? absl::StrCat(cell.engine, "@", cell.engine_subject->ToString())
                          : cell.engine);
  if (cell.library_subject) Add(command, "--library", cell.library_subject->ToString());
  std::string switches;
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.IsOmitted(cell) || dimension.flag_form == FlagForm::kNone) continue;
    const std::string value = dimension.text(cell);
    if (dimension.flag_form == FlagForm::kSwitch)
      absl::StrAppend(&switches, " ", dimension.Flag());
    else if (!value.empty())
      Add(command, dimension.Flag(), value);
  }
  for (const std::string& pin : cell.relax) Add(command, "--relax", pin);
  for (const auto& [name, value] : cell.probe.engine_options)
    Add(command, "--engine-option", absl::StrCat(name, "=", value));
  return command + switches;
}

}  // namespace bkm
