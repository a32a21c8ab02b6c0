// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/blame.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/judge/exception_reason.h"
#include "harness/judge/exception_text.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

bool SameException(const ObservedException* a, const ObservedException* b) {
  return a != nullptr && b != nullptr && a->type == b->type &&
         NormalizedMessage(a->message) == NormalizedMessage(b->message);
}

bool IsInPackage(absl::string_view name, absl::string_view package) {
  return !package.empty() &&
         (name == package || absl::StartsWith(name, absl::StrCat(package, ".")));
}

// Whether the frame concerns the library: its path or its source line names the library
// ("verl/workers/engine/torchtitan/transformer_impl.py").
bool MentionsLibrary(const ObservedFrame& frame, const std::string& library) {
  return !library.empty() &&
         (absl::StrContains(frame.file, library) || absl::StrContains(frame.text, library));
}

bool AsksLibraryForWhatItLacks(const ObservedException& exception, const ObservedFrame& frame,
                               const Packages& packages) {
  if (frame.owner != FrameOwner::kEngine) return false;
  const std::string why = ReasonOf(exception);
  if (why == reason::kModuleMissing || why == reason::kNameMissing)
    return IsInPackage(exception.name, packages.library);
  const bool wrong_call = why == reason::kUnexpectedKeyword || why == reason::kMissingArgument ||
                          why == reason::kTooManyArguments;
  if (why != reason::kAttributeMissing && !wrong_call) return false;
  // Python does not say whose object or function it was. Use the worker's `object` if it is there,
  // else the message and the frame.
  if (!exception.object.empty()) return IsInPackage(exception.object, packages.library);
  return absl::StrContains(exception.message, absl::StrCat("'", packages.library, ".")) ||
         MentionsLibrary(frame, packages.library);
}

// Whether a subject asks torch for a module, or a name of a module, that this version lacks.
bool AsksTorchForWhatItLacks(const ObservedException& exception) {
  const std::string why = ReasonOf(exception);
  if (why == reason::kModuleMissing || why == reason::kNameMissing)
    return IsInPackage(exception.name, "torch");
  return why == reason::kAttributeMissing &&
         (absl::StartsWith(exception.message, "module 'torch'") ||
          absl::StartsWith(exception.message, "module 'torch."));
}

// The party whose code runs in a frame.
std::string PartyOf(FrameOwner owner) {
  switch (owner) {
    case FrameOwner::kEngine:
      return "engine";
    case FrameOwner::kLibrary:
      return "library";
    case FrameOwner::kTorch:
    case FrameOwner::kRuntime:
      return "runtime";
    case FrameOwner::kHarness:
      return "harness";
    case FrameOwner::kPython:
      break;
  }
  return "";
}

// Rules 3 and 4.
std::vector<std::string> FromFrames(const ObservedException& exception) {
  const ObservedFrame* deepest = DeepestFrame(exception);
  if (deepest == nullptr) return {};
  if (deepest->owner != FrameOwner::kTorch) return {PartyOf(deepest->owner)};
  for (auto frame = exception.frames.rbegin(); frame != exception.frames.rend(); ++frame) {
    if (frame->owner == FrameOwner::kEngine || frame->owner == FrameOwner::kLibrary)
      return {PartyOf(frame->owner), "runtime"};
  }
  return {"runtime"};
}

// A module or name that the adapter asks for belongs to the subject whose name it carries, or whose
// own code imports it.
std::vector<std::string> FromMissingName(const ObservedException& exception,
                                         const Packages& packages) {
  // "verl/trainer/sft.py:12"
  const std::string importer = exception.imported_by.substr(0, exception.imported_by.find('/'));
  for (const std::string& name : {exception.name, importer}) {
    if (IsInPackage(name, packages.engine)) return {"engine"};
    if (IsInPackage(name, packages.library)) return {"library"};
  }
  return {"runtime"};
}

std::vector<std::string> FromException(const ObservedException& exception,
                                       const Packages& packages) {
  const ObservedFrame* deepest = DeepestFrame(exception);
  if (deepest == nullptr) return {};
  if (deepest->owner == FrameOwner::kHarness && !exception.imported_by.empty())
    return FromMissingName(exception, packages);
  if (AsksLibraryForWhatItLacks(exception, *deepest, packages)) return {"interface"};
  if (AsksTorchForWhatItLacks(exception)) return {"runtime"};
  return FromFrames(exception);
}

bool SameEnding(const ObservedEnding& a, const ObservedEnding& b) {
  return a.kind == b.kind && a.code == b.code && a.signal == b.signal && a.limit == b.limit;
}

}  // namespace

bool ControlStopsAlike(const Observation& observation, const Observation& control) {
  return SameException(DecidingException(observation), DecidingException(control));
}

std::vector<std::string> BlameForStop(const Observation& observation, const Packages& packages,
                                      const Observation* control) {
  const bool has_engine = !packages.engine.empty();
  if (has_engine && control == nullptr) return {};
  const ObservedException* exception = DecidingException(observation);
  std::vector<std::string> blame;
  if (exception == nullptr) {
    const bool shared = !has_engine || SameEnding(observation.ending, control->ending);
    if (shared) blame = {"library", "runtime"};
  } else if (blame = FromException(*exception, packages);
             has_engine && blame != std::vector<std::string>{"interface"} &&
             ControlStopsAlike(observation, *control)) {
    blame = FromException(*DecidingException(*control), {"", packages.library});
  }
  std::sort(blame.begin(), blame.end());
  return blame;
}

}  // namespace bkm
