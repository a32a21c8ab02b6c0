// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/command_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/base/shown_text.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

// Fields of a cell that are one flag with the same value; what is not here has no flag, or one of
// its own below.
const std::map<std::string, std::string>& Flags() {
  static const auto& flags =
      *new std::map<std::string, std::string>{{"runtime", "--runtime"},
                                              {"torch", "--torch"},
                                              {"model", "--model"},
                                              {"head", "--head"},
                                              {"attention", "--attention"},
                                              {"precision", "--precision"},
                                              {"documents", "--documents"},
                                              {"input", "--input"},
                                              {"steps", "--steps"},
                                              {"micro_batches", "--micro-batches"},
                                              {"seed", "--seed"},
                                              {"optimizer", "--optimizer"},
                                              {"checkpoint", "--checkpoint"},
                                              {"rope_keys", "--rope-keys"},
                                              {"layout", "--layout"},
                                              {"temperature", "--temperature"},
                                              {"config", "--config"}};
  return flags;
}

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
  for (const auto& [key, value] : CellFields(cell)) {
    const auto flag = Flags().find(key);
    if (flag != Flags().end() && !value.empty()) Add(command, flag->second, value);
  }
  for (const std::string& pin : cell.relax) Add(command, "--relax", pin);
  for (const auto& [name, value] : cell.probe.engine_options)
    Add(command, "--engine-option", absl::StrCat(name, "=", value));
  if (cell.probe.leftover_checkpoint) absl::StrAppend(&command, " --leftover-checkpoint");
  if (cell.probe.entropy) absl::StrAppend(&command, " --entropy");
  if (cell.probe.export_weights) absl::StrAppend(&command, " --export-weights");
  if (cell.probe.resume_checkpoint) absl::StrAppend(&command, " --resume-checkpoint");
  return command;
}

}  // namespace bkm
