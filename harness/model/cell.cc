// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

const std::vector<std::string>& Keys() {
  static const auto& keys = *new std::vector<std::string>{"engine",
                                                          "library",
                                                          "runtime",
                                                          "torch",
                                                          "relax",
                                                          "lock",
                                                          "model",
                                                          "head",
                                                          "attention",
                                                          "precision",
                                                          "device",
                                                          "ranks",
                                                          "threads",
                                                          "documents",
                                                          "input",
                                                          "micro_batches",
                                                          "leftover_checkpoint",
                                                          "steps",
                                                          "seed",
                                                          "optimizer",
                                                          "options",
                                                          "repeat",
                                                          "plant"};
  return keys;
}

std::string OptionsText(const Probe& probe) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : probe.engine_options)
    parts.push_back(absl::StrCat(name, ":", value));
  return absl::StrJoin(parts, "+");
}

std::string OptimizerText(const OptimizerSettings& o) {
  const Json defaults = ToJson(OptimizerSettings());
  const Json values = ToJson(o);
  std::vector<std::string> parts;
  for (const auto& [name, value] : values.items()) {
    if (defaults.value(name, Json()) == value) continue;
    parts.push_back(
        absl::StrCat(name, ":", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return absl::StrJoin(parts, "+");
}

std::string EngineText(const Cell& cell) {
  return cell.engine_subject ? absl::StrCat(cell.engine, "@", cell.engine_subject->ToString())
                             : cell.engine;
}

std::string LibraryText(const Cell& cell) {
  return cell.library_subject ? cell.library_subject->ToString() : "resolved";
}

bool GlobMatches(const std::string& pattern, const std::string& value) {
  return pattern == value || ::fnmatch(pattern.c_str(), value.c_str(), 0) == 0;
}

// What `subject` is called by somebody who knows it by its label.
std::string LabelText(const std::optional<SubjectSpec>& subject, const std::string& label) {
  if (!subject) return "";
  SubjectSpec spec = *subject;
  spec.revision = label;
  return spec.ToString();
}

std::string Slug(absl::string_view text) {
  std::string slug;
  for (char c : text)
    slug += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ? c : '-';
  return slug.substr(0, 24);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CellFields(const Cell& cell) {
  const Probe& p = cell.probe;
  const Probe defaults;
  std::vector<std::pair<std::string, std::string>> fields = {{"engine", EngineText(cell)},
                                                             {"library", LibraryText(cell)},
                                                             {"runtime", cell.runtime},
                                                             {"torch", cell.torch}};
  const auto add = [&](const char* key, std::string value, bool is_default) {
    if (!is_default) fields.emplace_back(key, std::move(value));
  };
  add("relax", absl::StrJoin(cell.relax, "+"), cell.relax.empty());
  add("lock", cell.lock, cell.lock.empty());
  add("model", p.model, false);
  add("head", p.head, p.head == defaults.head);
  add("attention", p.attention, false);
  add("precision", p.precision, false);
  add("device", p.device, false);
  add("ranks", absl::StrCat(p.ranks), p.ranks == defaults.ranks);
  add("threads", absl::StrCat(p.threads), p.threads == defaults.threads);
  add("documents", absl::StrJoin(p.documents, "+"), p.documents == defaults.documents);
  add("input", p.input, p.input == defaults.input);
  add("micro_batches", absl::StrCat(p.micro_batches), p.micro_batches == defaults.micro_batches);
  add("leftover_checkpoint", "true", !p.leftover_checkpoint);
  add("steps", absl::StrCat(p.steps), p.steps == defaults.steps);
  add("seed", absl::StrCat(p.seed), p.seed == defaults.seed);
  add("optimizer", OptimizerText(p.optimizer), p.optimizer == defaults.optimizer);
  add("options", OptionsText(p), p.engine_options.empty());
  add("repeat", absl::StrCat(cell.repeat), cell.repeat == 1);
  add("plant", absl::StrJoin(cell.plant, "+"), cell.plant.empty());
  return fields;
}

std::string CellId(const Cell& cell) {
  return absl::StrJoin(CellFields(cell), ",", absl::PairFormatter("="));
}

absl::StatusOr<CellFilter> CellFilter::FromPatterns(std::map<std::string, std::string> patterns) {
  for (const auto& [key, pattern] : patterns) {
    if (std::find(Keys().begin(), Keys().end(), key) == Keys().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key '", key, "'", DidYouMean(key, Keys())));
    }
  }
  CellFilter filter;
  filter.patterns_ = std::move(patterns);
  return filter;
}

absl::StatusOr<CellFilter> CellFilter::Parse(absl::string_view text) {
  std::map<std::string, std::string> patterns;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2 || pair[0].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' is no filter: write key=pattern,key=pattern, for example "
                       "engine=verl-torchtitan,attention=flex"));
    }
    patterns[pair[0]] = pair[1];
  }
  absl::StatusOr<CellFilter> filter = FromPatterns(std::move(patterns));
  if (!filter.ok()) return WithContext(filter.status(), absl::StrCat("filter '", text, "'"));
  return filter;
}

bool CellFilter::Matches(const Cell& cell) const {
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [key, value] : CellFields(cell)) values[key].push_back(value);
  const std::string engine_label = LabelText(cell.engine_subject, cell.engine_label);
  for (const std::string& name : {cell.engine, cell.engine_label, engine_label,
                                  absl::StrCat(cell.engine, "@", engine_label)}) {
    values["engine"].push_back(name);
  }
  if (cell.engine_subject) values["engine"].push_back(cell.engine_subject->ToString());
  values["library"].push_back(cell.library_label);
  values["library"].push_back(LabelText(cell.library_subject, cell.library_label));
  return std::all_of(patterns_.begin(), patterns_.end(), [&](const auto& wanted) {
    const auto it = values.find(wanted.first);
    // A field that the id leaves out has its default value, which only "*" or "" asks for.
    if (it == values.end()) return wanted.second == "*" || wanted.second.empty();
    return std::any_of(it->second.begin(), it->second.end(),
                       [&](const std::string& value) { return GlobMatches(wanted.second, value); });
  });
}

std::string CellFolderName(const Cell& cell, absl::string_view id) {
  std::vector<std::string> parts = {cell.engine};
  if (cell.engine_subject) parts.push_back(Slug(cell.engine_label));
  if (cell.library_subject)
    parts.push_back(absl::StrCat(cell.library_subject->name, "-", Slug(cell.library_label)));
  parts.push_back(cell.probe.attention);
  if (!cell.plant.empty()) parts.push_back(Slug(absl::StrJoin(cell.plant, "+")));
  parts.push_back(Sha256(id).substr(0, 8));
  return absl::StrJoin(parts, "-");
}

std::string CellDirectory(const Cell& cell, absl::string_view id) {
  return absl::StrCat("cells/", CellFolderName(cell, id));
}

}  // namespace bkm
