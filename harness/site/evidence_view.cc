// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/evidence_view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/judge/numbers_check.h"
#include "harness/judge/optimizer_check.h"
#include "harness/site/mask_picture.h"
#include "harness/site/page.h"
#include "harness/site/table.h"
#include "harness/site/token_plot.h"

namespace bkm {
namespace {

using html::Element;
using html::Empty;
using html::Markup;

Json Member(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? json[key] : Json();
}

std::string OutcomeText(const Finding* finding) {
  if (finding == nullptr) return "";
  if (finding->outcome == ClaimOutcome::kPassed) return "As asked.";
  if (!finding->message.empty()) return absl::StrCat("Not as asked: ", finding->message, ".");
  return finding->outcome == ClaimOutcome::kFailed ? "Not as asked." : "";
}

Markup OutcomeLine(const Finding* finding) {
  const std::string text = OutcomeText(finding);
  return text.empty() ? Markup() : Element("p", text);
}

// One layer of the model, as the witnesses saw it.
struct LayerView {
  std::string built;
  std::string called;
  std::string forward;
  std::string backward;
  bool operator==(const LayerView&) const = default;
};

std::vector<LayerView> LayersOf(const Observation& observation) {
  constexpr size_t kMostLayers = 512;  // on one page
  const auto place = [](int64_t layer) {
    return static_cast<size_t>(std::clamp<int64_t>(layer, 0, kMostLayers - 1));
  };
  size_t count = std::max(observation.layers.size(), observation.called.size());
  for (const ObservedKernels& kernels : observation.kernels)
    count = std::max(count, place(kernels.layer) + 1);
  count = std::min(count, kMostLayers);
  std::vector<LayerView> layers(count);
  for (size_t i = 0; i < std::min(count, observation.layers.size()); ++i) {
    const ObservedLayer& layer = observation.layers[i];
    layers[i].built = layer.class_name;
  }
  for (size_t i = 0; i < std::min(count, observation.called.size()); ++i)
    layers[i].called = observation.called[i];
  for (const ObservedKernels& kernels : observation.kernels) {
    LayerView& layer = layers[place(kernels.layer)];
    layer.forward = absl::StrJoin(kernels.forward, ", ");
    layer.backward = absl::StrJoin(kernels.backward, ", ");
  }
  return layers;
}

Markup SeenCell(const std::string& text) {
  return Element("td", text.empty() ? Markup("not seen") : Element("code", text));
}

// A bar of `multiple` floors against `allowed`, logarithmic: 0.1 floors is empty, 1000 is full.
Markup Bar(double multiple, double allowed) {
  const auto place = [](double value) {
    return 160 * std::clamp((std::log10(std::max(value, 0.1)) + 1) / 4, 0.0, 1.0);
  };
  return Element(
      "svg",
      {{"viewBox", "0 0 160 14"}, {"width", "160"}, {"height", "14"}, {"aria-hidden", "true"}},
      {Empty("rect", {{"class", "bar-ground"}, {"width", "160"}, {"height", "14"}}),
       Empty("rect", {{"class", multiple > allowed ? "bar over" : "bar"},
                      {"y", "3"},
                      {"width", html::Number(std::max(1.5, place(multiple)))},
                      {"height", "8"}}),
       Empty("path", {{"class", "limit"},
                      {"d", absl::StrCat("M", html::Number(place(allowed)), " 0v14")}})});
}

// `allowed`: floors, for quantities that do not say otherwise.
Markup QuantityRows(const NumbersFacts& facts, double allowed) {
  Markup rows;
  for (const NumbersQuantity& quantity : NumbersQuantities()) {
    const QuantityFacts* found = facts.Find(quantity.key);
    // A null of a foreign file reads as NaN.
    const auto is_finite = [](const std::optional<double>& x) { return x && std::isfinite(*x); };
    if (found == nullptr || !is_finite(found->error) || !is_finite(found->floor) ||
        !is_finite(found->multiple))
      continue;
    std::string where;
    if (found->step) where = absl::StrCat("step ", *found->step + 1);
    if (!found->tensor.empty()) absl::StrAppend(&where, ", ", found->tensor);
    const double multiple = *found->multiple, own = found->allowed.value_or(allowed);
    std::string outcome = multiple <= own ? "\u2713 within" : "\u2717 too far";
    if (found->allowed) absl::StrAppendFormat(&outcome, " (%.0f allowed)", own);
    rows << Element("tr",
                    {Element("th", {{"scope", "row"}}, absl::StrCat(quantity.name, quantity.over)),
                     NumberCell(absl::StrFormat("%.3g", *found->error)),
                     NumberCell(absl::StrFormat("%.3g", *found->floor)),
                     NumberCell(absl::StrFormat("%.*f", multiple < 100 ? 2 : 0, multiple)),
                     Element("td", Bar(multiple, own)), Element("td", outcome),
                     Element("td", {{"class", "small"}}, where)});
  }
  return rows;
}

Markup MaskKey() {
  const auto entry = [](const char* look, const char* text) {
    return Markup{
        Element(
            "svg",
            {{"viewBox", "0 0 14 10"}, {"width", "14"}, {"height", "10"}, {"aria-hidden", "true"}},
            Empty("rect", {{"class", look}, {"width", "14"}, {"height", "10"}})),
        " ", text, "\u2003"};
  };
  return {entry("key-sees", "attends, as asked"),
          entry("key-leak", "attends but must not (striped)"),
          entry("key-missing", "must attend but does not (dashed)")};
}

Markup MaskCallsLine(const Observation& observation) {
  std::map<std::string, int> counts;
  for (const ObservedMaskCall& call : observation.mask_calls)
    ++counts[absl::StrCat(call.type, call.owner.empty() ? "" : " of ", call.owner)];
  std::vector<std::string> parts;
  constexpr size_t kMostShown = 20;
  for (const auto& [what, count] : counts) {
    if (parts.size() == kMostShown) {
      parts.push_back(absl::StrCat("and ", counts.size() - kMostShown, " more"));
      break;
    }
    parts.push_back(absl::StrCat(what, " \u00d7 ", count));
  }
  if (parts.empty()) return {};
  return Element("p",
                 absl::StrCat("Masks that reached the layers: ", absl::StrJoin(parts, ", "), "."));
}

}  // namespace

std::string StringOf(const Json& json, const char* key) {
  const Json value = Member(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<double> NumberOf(const Json& json, const char* key) {
  const Json value = Member(json, key);
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

Markup BackendSection(const CellEvidence& evidence) {
  if (!evidence.observation) return {};
  const std::vector<LayerView> layers = LayersOf(*evidence.observation);
  const Finding* finding = evidence.verdict.Find("backend");
  if (layers.empty() && finding == nullptr) return {};
  Markup rows;
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && layers[end] == layers[begin]) ++end;
    const LayerView& layer = layers[begin];
    rows << Element("tr", {Element("th", {{"scope", "row"}},
                                   end - begin == 1 ? absl::StrCat(begin)
                                                    : absl::StrCat(begin, " to ", end - 1)),
                           SeenCell(layer.built), SeenCell(layer.called), SeenCell(layer.forward),
                           SeenCell(layer.backward)});
    begin = end;
  }
  Markup section = {Element("h3", {{"id", "backend"}}, "Attention: what was built and what ran"),
                    OutcomeLine(finding)};
  if (!rows.empty()) {
    section << CaptionedTable(
        "The attention of each layer. Equal neighbouring layers share a row.",
        {"layers", "built", "called", "dispatched, forward", "dispatched, backward"}, rows);
  }
  return section;
}

Markup MaskSection(const CellEvidence& evidence) {
  if (!evidence.observation) return {};
  const Observation& observation = *evidence.observation;
  const Finding* finding = evidence.verdict.Find("mask");
  if (finding == nullptr && evidence.attention.empty() && !observation.reach) return {};
  Markup section = {Element("h3", {{"id", "mask"}}, "Mask: who attends to whom"),
                    OutcomeLine(finding), MaskCallsLine(observation)};
  if (!observation.attended_error.empty()) {
    section << Element("p", absl::StrCat("Who attends to whom could not be read from the kernel: ",
                                         observation.attended_error, "."));
  }
  Markup pictures;
  for (size_t i = 0; i < evidence.attention.size(); ++i) {
    pictures << Element(
        "figure", {{"tabindex", "0"}},
        {MaskPicture(evidence.attention[i], evidence.documents, absl::StrCat("mask", i)),
         Element("figcaption", {MaskPictureText(evidence.attention[i], evidence.documents), "."})});
  }
  if (!pictures.empty()) {
    section << Element("p",
                       "Read from the kernel that ran, not from a mask. Rows are queries, columns "
                       "are keys; lines separate documents.")
            << Element("p", {{"class", "small"}}, MaskKey())
            << Element("div", {{"class", "side"}}, pictures);
  }
  if (observation.reach && !evidence.documents.empty()) {
    Markup strips = ReachStrip(*observation.reach, evidence.documents);
    std::string says = ReachText(*observation.reach, evidence.documents);
    for (const ObservedReach& reach : observation.more_reaches) {
      strips << ReachStrip(reach, evidence.documents);
      absl::StrAppend(&says, ". ", ReachText(reach, evidence.documents));
    }
    section << Element(
        "figure", {{"tabindex", "0"}},
        {strips, Element("figcaption", absl::StrCat("The reach test: one token (the arrow) is "
                                                    "changed; log-probs that move are marked. ",
                                                    says, "."))});
  }
  return section;
}

Markup NumbersSection(const CellEvidence& evidence) {
  const Finding* numbers = evidence.verdict.Find("numbers");
  const auto facts = FactsOf<NumbersFacts>(numbers);
  const double allowed = facts.allowed_multiple.value_or(kFloorMultiple);
  const Markup rows = QuantityRows(facts, allowed);
  if (rows.empty() && evidence.errors.empty()) return {};
  Markup section = {Element("h3", {{"id", "numbers"}}, "Numbers: how far from the fp64 reference"),
                    OutcomeLine(numbers)};
  if (!rows.empty()) {
    section << CaptionedTable(
        absl::StrFormat("The largest error of each quantity over all steps. The noise floor is the "
                        "largest error of correct implementations; %.0f floors are allowed, unless "
                        "a row says otherwise.",
                        allowed),
        {"quantity",
         {"error", true},
         {"floor", true},
         {"floors", true},
         "0.1 to 1000 floors",
         "outcome",
         "where"},
        rows);
  }
  for (const TokenErrors& errors : evidence.errors) {
    section << Element(
        "figure", {{"tabindex", "0"}},
        {TokenPlot(errors, allowed), Element("figcaption", {TokenPlotText(errors, allowed), "."})});
  }
  return section;
}

Markup StepsSection(const CellEvidence& evidence) {
  if (!evidence.observation || evidence.observation->steps.empty()) return {};
  const auto text = [](const std::optional<double>& value, const char* format) {
    const std::string number = value ? absl::StrFormat("%.5g", *value) : "";
    return value && std::isfinite(*value) ? number : std::string(format);
  };
  Markup rows;
  const std::vector<ObservedStep>& steps = evidence.observation->steps;
  for (size_t k = 0; k < steps.size(); ++k) {
    rows << Element(
        "tr",
        {Element("th", {{"scope", "row"}}, absl::StrCat(k + 1)),
         NumberCell(text(steps[k].loss, "not finite")),
         NumberCell(text(steps[k].grad_norm, "not seen")),
         NumberCell(text(steps[k].learning_rate, "not seen")),
         Element("td", steps[k].optimizer_class.empty() ? "not seen" : steps[k].optimizer_class)});
  }
  const Finding* optimizer = evidence.verdict.Find("optimizer");
  Markup section = {
      Element("h3", {{"id", "steps"}}, "Steps and optimizer"), OutcomeLine(optimizer),
      CaptionedTable(
          "The training steps as the engine reported them.",
          {"step", {"loss", true}, {"gradient norm", true}, {"learning rate", true}, "optimizer"},
          rows)};
  const auto worst = FactsOf<OptimizerFacts>(optimizer).worst_update;
  if (worst && worst->tolerances) {
    section << Element(
        "p", absl::StrFormat("AdamW in fp64 from the observed gradients gives the observed "
                             "parameters: the worst, of %s, uses %.2f of the tolerance.",
                             worst->tensor, *worst->tolerances));
  }
  return section;
}

}  // namespace bkm
