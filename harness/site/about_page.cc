// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/about_page.h"

#include <map>

#include "absl/strings/str_cat.h"
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
             {"A cell is one engine version with one library version in one runtime, asked for one "
              "model, one attention and one precision. It runs in a process of its own, without "
              "network. The engine builds the model as its own trainer does, loads the weights, "
              "and "
              "takes real training steps on packed documents.",
              "Nothing is taken on trust: not that an error would have been raised, not that a "
              "loss "
              "goes down. A loss passes documents that see each other."})
      << Element("h2", "The ladder")
      << Element("p",
                 "A cell climbs these rungs, one after the other. "
                 "It stands where it stopped, or where the "
                 "first check says that it is not what was asked.")
      << StageList() << Element("h2", "Verdicts") << VerdictLegend()
      << Element("h2", {{"id", "mask"}}, "How a mask is judged")
      << Paragraphs(
             {"Who attends to whom is read out of each layer's kernel after it ran: values are "
              "replaced by basis vectors, so that what comes out is the attention itself. It must "
              "be "
              "exactly the right relation: the same document, no future, within the layer's "
              "window.",
              "A second witness sees the whole stack: one token is changed, and only its own "
              "document's later log-probs may move."})
      << Element("h2", {{"id", "numbers"}}, "How numbers are judged")
      << Paragraphs(
             {"Everything is compared with an independent reference in fp64: log-probs token by "
              "token, loss, gradients of every tensor, the total gradient norm.",
              "No tolerance is guessed. The reference itself is computed in many roundings of the "
              "precision that was asked; the largest error that any of these right answers shows "
              "is "
              "the noise floor of that number on this machine. A cell may be 4 floors away. Right "
              "cells are at most 1.6 away, the mildest planted fault 11.",
              "The optimizer is judged by itself: AdamW in fp64 from the gradients that were "
              "observed must give the parameters that were observed.",
              "A wrong cell's log-probs are also compared with wrong answers that were foreseen "
              "(causal across documents, no positions, transposed heads); where one of them fits, "
              "the verdict names it."})
      << Element("h2", {{"id", "blame"}}, "Whose fault")
      << Paragraphs({"Engine, library, the interface between them (the engine asks for what the "
                     "library does "
                     "not have), the runtime (torch and packages), or the harness. It comes from "
                     "the frames "
                     "of the exception, and from a control cell: the same asked of the library "
                     "alone in the "
                     "same runtime."})
      << Element("h2", {{"id", "time"}}, "How long it is true")
      << Paragraphs(
             {"A row is evidence for the packages of its lock. It says when it was measured and "
              "from when on it should be measured again. A pair that was never run is unknown, "
              "not a no."})
      << Element("h2", {{"id", "reasons"}}, "Reasons") << ReasonTable();
  return page;
}

}  // namespace bkm
