// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/ending.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/exception_reason.h"
#include "harness/judge/exception_text.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

Stage StageOfStop(const Observation& observation) {
  const Stage stage = observation.LastStage();
  return stage == Stage::kBackend || stage == Stage::kMask ? Stage::kForward : stage;
}

std::string Sentence(absl::string_view what, const ObservedEnding& ending) {
  const std::string detail = FirstLine(ending.message);
  return detail.empty() ? std::string(what) : absl::StrCat(what, ": ", detail);
}

// Errors that mean a full disk or exhausted memory, wherever they are raised. A subject can raise
// them too, so what the runner found on the machine decides. If it did not look, nothing is
// excused.
std::optional<Stop> MachineAtItsEnd(const Observation& observation,
                                    const ObservedException& exception, Stage stage) {
  const ObservedMachine machine = observation.machine.value_or(ObservedMachine());
  const std::string message = DescribeException(exception);
  if (absl::StrContains(exception.message, "No space left on device") && machine.disk_full)
    return Stop{VerdictKind::kSpurious, stage, reason::kDiskFull, message};
  if (!absl::StrContains(exception.message, "[Errno 12]")) return std::nullopt;
  if (machine.memory_short)
    return Stop{VerdictKind::kSpurious, stage, reason::kMachineMemory, message};
  return Stop{VerdictKind::kBroken, stage, reason::kLimitMemory, message};
}

// The backend that was built instead of the asked one, or nullptr.
const AttentionBackend* Replacement(const Observation& observation, const Probe& probe) {
  const AttentionBackend* asked = AskedBackend(probe.attention);
  if (asked == nullptr || !observation.not_asked.empty()) return nullptr;
  for (const ObservedLayer& layer : observation.layers) {
    if (IsNamedAfter(layer.class_name, *asked)) continue;
    if (const AttentionBackend* other = BackendOfName(layer.class_name)) return other;
  }
  if (observation.configured.empty() || IsNamedAfter(observation.configured, *asked))
    return nullptr;
  return BackendOfName(observation.configured);
}

// An ImportError in the chain that reports a missing package of a backend that was not asked for:
// the code had replaced the asked backend by that one.
struct MissingPackage {
  const AttentionBackend* backend = nullptr;
  const ObservedException* exception = nullptr;
};
std::optional<MissingPackage> MissingReplacement(const Observation& observation,
                                                 const Probe& probe) {
  const AttentionBackend* asked = AskedBackend(probe.attention);
  if (asked == nullptr) return std::nullopt;
  for (const ObservedException& exception : observation.exceptions) {
    const ObservedFrame* frame = DeepestFrame(exception);
    if (exception.type != "ImportError" || frame == nullptr || frame->statement != "raise")
      continue;
    const std::string message = WithoutPaths(exception.message);
    if (Names(message, *asked)) continue;
    for (const AttentionBackend& backend : AttentionBackends()) {
      if (Names(message, backend)) return MissingPackage{&backend, &exception};
    }
  }
  return std::nullopt;
}

// Whether the exception concerns the backend: its message names it, or a frame runs inside it.
bool IsAbout(const ObservedException& exception, const AttentionBackend& backend) {
  return Names(WithoutPaths(exception.message), backend) ||
         std::any_of(
             exception.frames.begin(), exception.frames.end(), [&](const ObservedFrame& frame) {
               return frame.owner != FrameOwner::kHarness && IsNamedAfter(frame.function, backend);
             });
}

// Whether the deepest frames are of a module of ours that a subject imported: nothing of ours asked
// for it.
bool SubjectImportedTheHarness(const ObservedException& exception) {
  const ObservedFrame* outermost = nullptr;  // of the deepest frames in our own code
  for (auto frame = exception.frames.rbegin(); frame != exception.frames.rend(); ++frame) {
    if (frame->owner == FrameOwner::kPython) continue;
    if (frame->owner == FrameOwner::kHarness) {
      outermost = &*frame;
      continue;
    }
    return outermost != nullptr && outermost->function == "<module>";
  }
  return false;
}

// Whether the exception says nothing about the subjects: it was raised in our own code, which asked
// for something that no subject's own code imports; or in torch, on which our own code called
// before the subjects ran (a stand-in kernel that does not load). torch that cannot be imported is
// the runtime's.
bool IsOfTheHarness(const ObservedException& exception, Stage stage) {
  const ObservedFrame* deepest = DeepestFrame(exception);
  if (deepest == nullptr || !exception.imported_by.empty()) return false;
  if (deepest->owner == FrameOwner::kHarness) return !SubjectImportedTheHarness(exception);
  if (stage > Stage::kImport || deepest->owner != FrameOwner::kTorch) return false;
  const ObservedFrame* above = nullptr;  // the torch frame that our code called
  for (auto frame = exception.frames.rbegin(); frame != exception.frames.rend(); ++frame) {
    if (frame->owner == FrameOwner::kPython) continue;
    if (frame->owner == FrameOwner::kHarness) return above->function != "<module>";
    if (frame->owner != FrameOwner::kTorch) return false;
    above = &*frame;
  }
  return false;
}

// Says which name of a subject only our adapter asks for.
std::string OfTheHarness(const ObservedException& exception) {
  const std::string message = DescribeException(exception);
  const bool lacks_name = exception.type == "ModuleNotFoundError" ||
                          exception.type == "ImportError" || exception.type == "AttributeError";
  if (!lacks_name || exception.name.empty() || absl::StartsWith(exception.name, "bkm_cell"))
    return message;
  return absl::StrCat(
      "bkm's adapter asks for ", exception.name,
      ", which this version lacks and which none of its own code imports: ", message);
}

// A refusal raised while another error was being handled counts only if that error is the failed
// look-up of the option or of its package. Otherwise it merely wraps the real error.
bool RefusesOnPurpose(const Observation& observation, const Probe& probe) {
  const std::vector<ObservedException>& chain = observation.exceptions;
  if (!IsRefusal(chain.front(), probe)) return false;
  if (chain.size() == 1) return true;
  const std::string why = ReasonOf(chain[1]);
  return why == reason::kLookupFailed || why == reason::kModuleMissing ||
         why == reason::kNameMissing || why == reason::kImportFailed || why == reason::kValueError;
}

// An exception of this type that the harness's own code raised.
bool IsOwn(const ObservedException& exception, absl::string_view type) {
  const ObservedFrame* frame = DeepestFrame(exception);
  return exception.type == type && frame != nullptr && frame->owner == FrameOwner::kHarness;
}

Stop ClassifyException(const Observation& observation, const Probe& probe) {
  const Stage stage = StageOfStop(observation);
  const ObservedException* exception = DecidingException(observation);
  if (exception == nullptr)
    return {VerdictKind::kBroken, stage, reason::kRaised,
            Sentence("the cell raised an exception but could not report it", observation.ending)};
  if (exception->module == "bkm_cell.ranks")
    return {VerdictKind::kBroken, stage, reason::kRanksStuck, exception->message};
  if (std::optional<Stop> stop = MachineAtItsEnd(observation, *exception, stage)) return *stop;
  const std::string message = DescribeException(*exception);
  // What the subject returned cannot be what the probe asked for.
  if (IsOwn(*exception, "WrongShape"))
    return {VerdictKind::kWrong, stage, reason::kWrongShape, exception->message};
  // The device did not compute before any code of a subject ran.
  if (IsOwn(*exception, "DeviceUnusable") && observation.stages.empty())
    return {VerdictKind::kUnsupported, Stage::kBackend, reason::kDeviceMissing, exception->message};
  if (IsOfTheHarness(*exception, stage))
    return {VerdictKind::kUnsupported, stage, reason::kHarnessError, OfTheHarness(*exception)};
  const AttentionBackend* replacement = Replacement(observation, probe);
  if (replacement != nullptr && IsAbout(*exception, *replacement)) {
    return {VerdictKind::kBroken, stage, reason::kOverrideIgnored,
            absl::StrCat("asked for ", probe.attention, ", got ", std::string(replacement->name),
                         "; then ", message)};
  }
  if (const auto missing = MissingReplacement(observation, probe)) {
    return {
        VerdictKind::kBroken, stage, reason::kOverrideIgnored,
        absl::StrCat("asked for ", probe.attention, ", got ", std::string(missing->backend->name),
                     "; then ", DescribeException(*missing->exception))};
  }
  if (ContradictsTheProbe(*exception, probe))
    return {VerdictKind::kBroken, stage, reason::kOverrideIgnored, message};
  if (RefusesOnPurpose(observation, probe))
    return {VerdictKind::kRefused, stage, reason::kRefusedOption,
            DescribeException(observation.exceptions.front())};
  return {VerdictKind::kBroken, stage, ReasonOf(*exception), message};
}

// Which rank's process ended the cell, and where the ranks waited when its time was over.
std::string OfRanks(const Observation& observation) {
  std::string text =
      observation.rank_ended.empty() ? "" : absl::StrCat(" (", observation.rank_ended, ")");
  if (!text.empty()) return text;
  for (const ObservedRank& rank : observation.ranks) {
    if (!rank.waits.empty())
      absl::StrAppend(&text, "; rank ", rank.rank, " was ", FirstLine(rank.waits));
  }
  return text;
}

Stop ClassifyTimeout(const Observation& observation) {
  const Stage stage = StageOfStop(observation);
  if (observation.timeouts >= 2)
    return {VerdictKind::kBroken, stage, reason::kTimeout,
            absl::StrCat(Sentence("exceeded its time limit again, alone and with twice the time",
                                  observation.ending),
                         OfRanks(observation))};
  return {VerdictKind::kSpurious, stage, reason::kTimeoutOnce,
          absl::StrCat(Sentence("exceeded its time limit once", observation.ending),
                       OfRanks(observation))};
}

Stop ClassifyLimit(const Observation& observation) {
  const ObservedEnding& ending = observation.ending;
  const char* code = ending.limit == "output"      ? reason::kLimitOutput
                     : ending.limit == "files"     ? reason::kLimitFiles
                     : ending.limit == "cpu"       ? reason::kLimitCpu
                     : ending.limit == "events"    ? reason::kLimitEvents
                     : ending.limit == "processes" ? reason::kLimitProcesses
                                                   : reason::kLimitMemory;
  return {VerdictKind::kBroken, StageOfStop(observation), code,
          Sentence(absl::StrCat("exceeded its limit on ", ending.limit), ending)};
}

Stop ClassifySignal(const Observation& observation) {
  const ObservedEnding& ending = observation.ending;
  const std::string what = absl::StrCat(
      "ended by ", ending.signal ? absl::StrCat("signal ", *ending.signal) : "a signal",
      OfRanks(observation));
  if (ending.from_outside)
    return {VerdictKind::kSpurious, StageOfStop(observation), reason::kKilled,
            Sentence(what + " from outside", ending)};
  return {VerdictKind::kBroken, StageOfStop(observation), reason::kCrashed, Sentence(what, ending)};
}

}  // namespace

std::optional<Stop> ClassifyEnding(const Observation& observation, const Probe& probe) {
  const ObservedEnding& ending = observation.ending;
  const auto spurious = [&](const char* code, absl::string_view what) {
    return Stop{VerdictKind::kSpurious, StageOfStop(observation), code, Sentence(what, ending)};
  };
  switch (ending.kind) {
    case EndingKind::kCompleted:
      return std::nullopt;
    case EndingKind::kRaised:
      return ClassifyException(observation, probe);
    case EndingKind::kExited:
      return Stop{VerdictKind::kBroken, StageOfStop(observation), reason::kExited,
                  Sentence(absl::StrCat("the process exited with code ", ending.code.value_or(0),
                                        " before it finished", OfRanks(observation)),
                           ending)};
    case EndingKind::kSignalled:
      return ClassifySignal(observation);
    case EndingKind::kTimedOut:
      return ClassifyTimeout(observation);
    case EndingKind::kLimit:
      return ClassifyLimit(observation);
    case EndingKind::kCancelled:
      return spurious(reason::kCancelled, "the run was interrupted");
    case EndingKind::kNoSolution:
      return Stop{VerdictKind::kBroken, Stage::kResolve, reason::kNoSolution, ending.message};
    case EndingKind::kInstallFailed:
      return Stop{VerdictKind::kBroken, Stage::kInstall, reason::kInstallFailed, ending.message};
    case EndingKind::kRequirementNotAllowed:
      return Stop{VerdictKind::kUnsupported, Stage::kResolve, reason::kRequirementNotAllowed,
                  ending.message};
    case EndingKind::kRequirementMalformed:
      return Stop{VerdictKind::kBroken, Stage::kResolve, reason::kRequirementMalformed,
                  ending.message};
    case EndingKind::kRegistryUnreachable:
      return Stop{VerdictKind::kSpurious, Stage::kResolve, reason::kRegistryUnreachable,
                  ending.message};
    case EndingKind::kApiCheck:
      return Stop{VerdictKind::kSkipped, Stage::kImport, reason::kApiCheck, ending.message};
    case EndingKind::kTreeNotAllowed:
      return Stop{VerdictKind::kUnsupported, Stage::kResolve, reason::kTreeNotAllowed,
                  ending.message};
    case EndingKind::kSourceIncomplete:
      return Stop{VerdictKind::kUnsupported, Stage::kResolve, reason::kSourceIncomplete,
                  ending.message};
    case EndingKind::kDeviceMissing:
      return Stop{VerdictKind::kUnsupported, Stage::kBackend, reason::kDeviceMissing,
                  ending.message};
    case EndingKind::kNotOffered:
      return Stop{VerdictKind::kUnsupported, Stage::kConstruct, reason::kNotOffered,
                  ending.message};
    case EndingKind::kMalformed:
      return Stop{VerdictKind::kBroken, StageOfStop(observation), reason::kEvidenceMalformed,
                  Sentence("what the cell reported cannot be read", ending)};
    case EndingKind::kForkFailed:
      return spurious(reason::kForkFailed, "the cell's process could not be started");
    case EndingKind::kLost:
      break;
  }
  return spurious(reason::kWorkerLost,
                  "the worker died or went silent before it reported how the cell ended");
}

}  // namespace bkm
