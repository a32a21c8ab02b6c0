// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/about_page.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"
#include "harness/site/table.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

Markup Paragraphs(const std::vector<const char*>& texts) {
  Markup out;
  for (const char* text : texts) out << Element("p", text);
  return out;
}

Markup StageList() {
  Markup rows;
  for (const Stage stage : Stages()) {
    rows << Element("dt", std::string(Name(stage))) << Element("dd", MeaningOf(stage));
  }
  return Element("dl", {{"class", "facts"}}, rows);
}

// A claim's text, whose Markdown has code and links only. Links lead into the sources: their words
// stay.
Markup ClaimText(absl::string_view markdown) {
  Markup out;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) out << Markup(plain);
    plain.clear();
  };
  while (!markdown.empty()) {
    const size_t middle = markdown.find("](");
    const size_t close = markdown[0] == '`' ? markdown.find('`', 1)
                         : markdown[0] == '['
                             ? markdown.find(')', std::min(middle, markdown.size()))
                             : absl::string_view::npos;
    if (close == absl::string_view::npos) {
      plain += markdown[0];
      markdown.remove_prefix(1);
      continue;
    }
    if (markdown[0] == '`') {
      end_plain();
      out << Element("code", std::string(markdown.substr(1, close - 1)));
    } else {
      absl::StrAppend(&plain, markdown.substr(1, middle - 1));
    }
    markdown.remove_prefix(close + 1);
  }
  end_plain();
  return out;
}

Markup ClaimTable() {
  Markup rows;
  for (const Claim* claim : Claims()) {
    Markup name = {Element("code", claim->name), ": ", ClaimText(claim->says)};
    if (*claim->asked_by) name << Markup({" (if ", Element("code", claim->asked_by), " is asked)"});
    rows << Element(
        "tr", {Element("th", {{"scope", "row"}}, name), Element("td", ClaimText(claim->witness)),
               Element("td", ClaimText(claim->cannot_see))});
  }
  return CaptionedTable("What an ok cell claims. Each claim has a witness that could have said no.",
                        {"claim", "witness, and when it looks", "what it cannot see"}, rows,
                        "Claims");
}

Markup ReasonTable() {
  Markup rows;
  for (const reason::Entry& entry : reason::All()) {
    rows << Element("tr", {Element("th", {{"scope", "row"}}, Element("code", entry.code)),
                           Element("td", entry.meaning)});
  }
  return CaptionedTable("Every reason that a verdict can have.", {"reason", "meaning"}, rows,
                        "Reasons");
}

}  // namespace

Page AboutPage() {
  Page page;
  page.path = "about.html";
  page.title = "How it is judged";
  page.main
      << Element("h1", page.title)
      << Paragraphs(
             {"A cell is one engine version with one library version in one runtime, with one "
              "model, one attention and one precision. It runs in a process of its own, without "
              "network. The engine builds the model as its own trainer does, loads the weights, "
              "and takes real training steps on packed documents.",
              "Neither the absence of an error nor a falling loss counts as proof: documents that "
              "attend to each other do not disturb a loss."})
      << Element("h2", "The ladder")
      << Element(
             "p",
             "A cell climbs these rungs in order. Its verdict names the rung at which it stopped, "
             "or the first check that failed.")
      << StageList() << Element("h2", "Verdicts") << VerdictLegend()
      << Element("h2", {{"id", "claims"}}, "What ok means") << ClaimTable()
      << Element("h2", {{"id", "mask"}}, "How a mask is judged")
      << Paragraphs(
             {"Who attends to whom is read from each layer's kernel after it ran: basis vectors "
              "replace the values, so that the output is the attention itself. It must be exactly "
              "the right relation: the same document, no future, within the layer's window.",
              "A second witness tests the whole stack: one token is changed, and only later "
              "log-probs of its own document may move."})
      << Element("h2", {{"id", "numbers"}}, "How numbers are judged")
      << Paragraphs(
             {"All numbers are compared with an independent reference in fp64: log-probs of each "
              "token, loss, gradients of every tensor, the total gradient norm.",
              "No tolerance is guessed. The reference is also computed in many roundings of the "
              "precision in question. The largest error of these correct answers is the noise "
              "floor of that number on this machine. An error of up to 4 floors is allowed. "
              "Correct "
              "cells reach at most 1.6 floors, the mildest planted fault 11.",
              "The optimizer is judged separately: AdamW in fp64 with the observed gradients must "
              "give the observed parameters.",
              "The log-probs of a wrong cell are also compared with known wrong answers (causal "
              "across documents, no positions, transposed heads); if one matches, the verdict "
              "names it."})
      << Element("h2", {{"id", "blame"}}, "Whose fault")
      << Paragraphs(
             {"The engine, the library, the interface between them (the engine uses something "
              "that the library lacks), the runtime (torch and packages), or the harness. "
              "The frames of the exception and a control cell decide: the control asks the "
              "same of the library alone in the same runtime."})
      << Element("h2", {{"id", "time"}}, "How long a result holds")
      << Paragraphs(
             {"A row is evidence for the packages of its lock. It says when it was measured and "
              "when it expires. For a pair that was never run, nothing is known."})
      << Element("h2", {{"id", "reasons"}}, "Reasons") << ReasonTable();
  return page;
}

}  // namespace bkm
