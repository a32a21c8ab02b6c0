// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/verdict_view.h"

#include "absl/strings/str_cat.h"
#include "harness/judge/reasons.h"
#include "harness/report/labels.h"
#include "harness/site/table.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

const char* SignOf(const std::optional<VerdictKind>& kind) {
  if (!kind) return "?";
  switch (*kind) {
    case VerdictKind::kOk:
      return "\u2713";
    case VerdictKind::kRefused:
      return "\u2298";
    case VerdictKind::kBroken:
      return "\u2717";
    case VerdictKind::kWrong:
      return "\u2260";
    case VerdictKind::kUnsupported:
      return "\u2013";
    case VerdictKind::kSpurious:
      return "~";
    case VerdictKind::kSkipped:
      return "\u2026";
  }
  return "?";
}

}  // namespace

Markup VerdictBadge(const std::optional<VerdictKind>& kind, const std::string& link,
                    const std::string& before) {
  const std::string name = kind ? std::string(Name(*kind)) : "unknown";
  const html::Attribute look = {"class", "verdict v-" + name};
  Markup content = Element("span", {{"class", "sign"}, {"aria-hidden", "true"}}, SignOf(kind));
  if (!before.empty()) content << before << " ";
  content << name;
  return link.empty() ? Element("span", {look}, content)
                      : Element("a", {look, {"href", link}}, content);
}

const char* MeaningOf(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kOk:
      return "It ran, and the attention that was built, the mask that reached it, the weights, the "
             "numbers and the optimizer are what was asked.";
    case VerdictKind::kRefused:
      return "A clear error names the unsupported option. Choose another one.";
    case VerdictKind::kBroken:
      return "It stopped: a missing module, a wrong keyword, a crash, or requirements that "
             "contradict each other.";
    case VerdictKind::kWrong:
      return "It ran to the end and is not what was asked. This is the dangerous one: no error "
             "appears.";
    case VerdictKind::kUnsupported:
      return "The harness or the machine cannot judge it. No fault was found.";
    case VerdictKind::kSpurious:
      return "Not the pair's fault (a full disk, a kill from outside). It says nothing about the "
             "pair.";
    case VerdictKind::kSkipped:
      return "Left out on purpose, for the reason given.";
  }
  return "";
}

const char* MeaningOf(Stage stage) {
  switch (stage) {
    case Stage::kResolve:
      return "packages are found that satisfy the requirements of both";
    case Stage::kInstall:
      return "these packages are installed";
    case Stage::kImport:
      return "the engine is imported, and imports the library";
    case Stage::kConstruct:
      return "the engine builds its model and optimizer from the library";
    case Stage::kLoad:
      return "the weights are loaded from a Hugging Face folder";
    case Stage::kBackend:
      return "each layer built and ran the attention that was asked for";
    case Stage::kMask:
      return "every token attends to exactly the past of its own document";
    case Stage::kForward:
      return "a training step's forward pass";
    case Stage::kBackward:
      return "its backward pass";
    case Stage::kStep:
      return "the optimizer updates the parameters as AdamW does";
    case Stage::kGolden:
      return "every number is as close to an fp64 reference as rounding allows";
    case Stage::kExport:
      return "transformers loads the exported weights and computes the same with them (only if "
             "asked for)";
    case Stage::kResume:
      return "a fresh engine loads a checkpoint and continues with the same numbers (only if asked "
             "for)";
  }
  return "";
}

std::string MeaningOfReason(const std::string& code) {
  for (const reason::Entry& entry : reason::All()) {
    if (code == entry.code) return entry.meaning;
  }
  return "";
}

const std::vector<VerdictKind>& VerdictKinds() {
  static const auto& kinds = *new std::vector<VerdictKind>{
      VerdictKind::kOk,          VerdictKind::kRefused,  VerdictKind::kBroken, VerdictKind::kWrong,
      VerdictKind::kUnsupported, VerdictKind::kSpurious, VerdictKind::kSkipped};
  return kinds;
}

const std::vector<Stage>& Stages() {
  static const auto& stages = *new std::vector<Stage>{
      Stage::kResolve, Stage::kInstall, Stage::kImport,  Stage::kConstruct, Stage::kLoad,
      Stage::kBackend, Stage::kMask,    Stage::kForward, Stage::kBackward,  Stage::kStep,
      Stage::kGolden,  Stage::kExport,  Stage::kResume};
  return stages;
}

std::string WhyText(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kOk) return "";
  return absl::StrCat("at ", Name(verdict.stage), ": ",
                      verdict.message.empty() ? absl::string_view(verdict.reason)
                                              : MessageWithoutPlace(verdict.message));
}

Markup VerdictLegend() {
  Markup rows;
  for (const VerdictKind kind : VerdictKinds()) {
    rows << Element("tr", {Element("th", {{"scope", "row"}}, VerdictBadge(kind)),
                           Element("td", MeaningOf(kind))});
  }
  rows << Element("tr", {Element("th", {{"scope", "row"}}, VerdictBadge(std::nullopt)),
                         Element("td", "Never run, so nothing is known.")});
  return CaptionedTable("Verdicts of a cell: one pair of versions with one question.",
                        {"Verdict", "Meaning"}, rows, "What the verdicts mean");
}

}  // namespace bkm
