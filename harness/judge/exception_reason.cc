// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/exception_reason.h"

#include <algorithm>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/exception_text.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

struct Wording {
  absl::string_view type;  // "": any
  absl::string_view text;  // part of the lower-case message; "": any
  const char* reason;
};

// The first match wins. All texts come from Python and torch, which every subject shares.
constexpr Wording kWordings[] = {
    {"ModuleNotFoundError", "", reason::kModuleMissing},
    {"ImportError", "cannot import name", reason::kNameMissing},
    {"ImportError", "", reason::kImportFailed},
    {"NameError", "", reason::kNameMissing},
    {"UnboundLocalError", "", reason::kNameMissing},
    {"AttributeError", "", reason::kAttributeMissing},
    {"AssertionError", "", reason::kAssertion},
    {"NotImplementedError", "", reason::kNotImplemented},
    {"MemoryError", "", reason::kLimitMemory},
    {"RuntimeError", "defaultcpuallocator: can't allocate memory", reason::kLimitMemory},
    {"KeyError", "", reason::kLookupFailed},
    {"IndexError", "", reason::kLookupFailed},
    {"LookupError", "", reason::kLookupFailed},
    {"StopIteration", "", reason::kLookupFailed},
    {"FileNotFoundError", "", reason::kLookupFailed},
    {"TypeError", "unexpected keyword argument", reason::kUnexpectedKeyword},
    {"TypeError", "invalid keyword argument", reason::kUnexpectedKeyword},
    {"TypeError", "missing required", reason::kMissingArgument},
    {"TypeError", "required positional argument", reason::kMissingArgument},
    {"TypeError", "required keyword-only argument", reason::kMissingArgument},
    {"TypeError", "positional argument", reason::kTooManyArguments},
    {"TypeError", "", reason::kTypeError},
    {"", "shapes cannot be multiplied", reason::kShapeError},
    {"", "size mismatch", reason::kShapeError},
    {"", "must match the size of tensor", reason::kShapeError},
    {"", "must match the existing size", reason::kShapeError},
    {"", "is invalid for input of size", reason::kShapeError},
    {"", "view size is not compatible", reason::kShapeError},
    {"", "expected scalar type", reason::kDtypeError},
    {"", "have the same dtype", reason::kDtypeError},
    {"", "only support fp16 and bf16", reason::kDtypeError},
    {"", "no matching", reason::kLookupFailed},
    {"", "not found", reason::kLookupFailed},
    {"ValueError", "", reason::kValueError},
    {"", "", reason::kRaised},
};

// Whether a message names the asked attention or an asked engine option.
bool NamesAsked(absl::string_view message, const Probe& probe) {
  const AttentionBackend* backend = AskedBackend(probe.attention);
  if (backend ? Names(message, *backend) : NamesOption(message, probe.attention)) return true;
  return std::any_of(probe.engine_options.begin(), probe.engine_options.end(),
                     [&](const auto& option) { return NamesOption(message, option.first); });
}

bool HasOneOf(absl::string_view text, std::span<const char* const> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return absl::StrContains(text, word); });
}

// Whether a message says no, or tells the caller what to ask for instead: "weight tying is not
// supported with pipeline parallel", "when X, you must enable Y", "X and Y exclude each other".
bool DeniesOrDemands(absl::string_view text) {
  constexpr const char* kDenials[] = {
      "not support",    "n't support", "unsupported",    "not implemented", "cannot",
      "can't",          "not allowed", "not compatible", "incompatible",    "not yet",
      "exclude",        "exclusive",   "conflict",       "only support",    "not available",
      "at most one of", "only one of", "disallowed",     "not possible",    "not work"};
  constexpr const char* kDemands[] = {
      "must enable",   "must be enabled", "must disable", "must be disabled", "must set",
      "must be set",   "must use",        "must also",    "must specify",     "must provide",
      "must be true",  "must be false",   "divisible",    "requires",         "require ",
      "required",      "need to",         "needs ",       "please ",          "should be set",
      "should enable", "should disable",  "has to be",    "have to be",       "make sure"};
  return HasOneOf(text, kDenials) || HasOneOf(text, kDemands);
}

// Whether a message names something else than the attention and the engine's options that the probe
// asks for and that is not everyone's default: a kind of parallelism, padded input, parts of a
// batch.
bool NamesSomethingElseAsked(absl::string_view message, absl::string_view text,
                             const Probe& probe) {
  struct Words {
    const char* dimension;
    std::vector<const char*> parts;
  };
  static const auto& all =
      *new std::vector<Words>{{"dp_replicate", {"data parallel", "replicat", "hsdp", "ddp"}},
                              {"dp_shard", {"data parallel", "fsdp", "shard"}},
                              {"tp", {"tensor parallel"}},
                              {"cp", {"context parallel"}},
                              {"pp", {"pipeline parallel", "pipelin"}},
                              {"ep", {"expert parallel"}},
                              {"ulysses", {"ulysses", "sequence parallel"}}};
  for (const LayoutDimension& dimension : LayoutDimensions()) {
    if (probe.layout.*dimension.degree == 1) continue;
    if (NamesOption(message, dimension.name) || NamesDegree(message, dimension.name)) return true;
    for (const Words& words : all) {
      if (words.dimension == absl::string_view(dimension.name) && HasOneOf(text, words.parts))
        return true;
    }
  }
  constexpr const char* kPadded[] = {"padded", "remove padding", "removing padding", "rmpad"};
  constexpr const char* kParts[] = {"micro batch", "microbatch", "gradient accumulation"};
  return (absl::StartsWith(probe.input, "padded") && HasOneOf(text, kPadded)) ||
         (probe.micro_batches > 1 && HasOneOf(text, kParts));
}

// Whether a message denies or restricts what the probe asks for beside attention and options.
bool RefusesSomethingElse(absl::string_view message, const Probe& probe) {
  const std::string text =
      absl::StrReplaceAll(message, {{"_", " "}, {"-", " "}, {"parallelism", "parallel"}});
  return DeniesOrDemands(text) && NamesSomethingElseAsked(message, text, probe);
}

// The part of the lower-case message that lists the supported options, as in "only varlen and flex
// attn masks are supported" or "must be one of ['flex', 'varlen']"; empty if there is none.
absl::string_view SupportedList(absl::string_view message) {
  for (absl::string_view opening : {"only ", "one of "}) {
    const size_t begin = message.find(opening);
    if (begin == message.npos) continue;
    // The list ends with the sentence, or where it goes on to the value that was given, or to
    // "supported".
    size_t end = message.size();
    for (absl::string_view closing : {" supported", " got ", " but ", "]", ". "})
      end = std::min(end, message.find(closing, begin));
    return message.substr(begin, end - begin);
  }
  return "";
}

// Whether a frame is in the package of the kernel that was asked for.
bool IsOfTheKernel(const ObservedFrame& frame, const Probe& probe) {
  const AttentionBackend* asked = AskedBackend(probe.attention);
  return asked != nullptr && !asked->package.empty() && frame.owner == FrameOwner::kRuntime &&
         absl::StartsWith(frame.file, absl::StrCat(asked->package, "/"));
}

// Whether a kernel refuses what the probe asks for, such as fp32 or its heads, and speaks of
// itself. It does not where it lists the precision that was asked for: then it was given another
// one.
bool KernelRefuses(const ObservedException& exception, const Probe& probe) {
  const std::string message = absl::AsciiStrToLower(WithoutPaths(exception.message));
  return Names(message, *AskedBackend(probe.attention)) &&
         !absl::StrContains(SupportedList(message), probe.precision);
}

bool NamesSomeBackend(absl::string_view text) {
  const std::span<const AttentionBackend> backends = AttentionBackends();
  return std::any_of(backends.begin(), backends.end(),
                     [&](const AttentionBackend& backend) { return Names(text, backend); });
}

}  // namespace

std::string ReasonOf(const ObservedException& exception) {
  const std::string message = absl::AsciiStrToLower(exception.message);
  for (const Wording& wording : kWordings) {
    if ((wording.type.empty() || wording.type == exception.type) &&
        absl::StrContains(message, wording.text))
      return wording.reason;
  }
  return reason::kRaised;
}

bool ContradictsTheProbe(const ObservedException& exception, const Probe& probe) {
  const std::string message = absl::AsciiStrToLower(WithoutPaths(exception.message));
  const AttentionBackend* backend = AskedBackend(probe.attention);
  return backend != nullptr && Names(SupportedList(message), *backend);
}

bool NeedsOtherHardware(const ObservedException& exception, const Probe& probe) {
  constexpr const char* kHardware[] = {"hopper",
                                       "blackwell",
                                       "ampere",
                                       "compute capability",
                                       "nvidia driver",
                                       "cuda is not available",
                                       "not compiled with cuda",
                                       "no cuda gpus",
                                       "from the 'cpu' backend",
                                       "accelerator device when none is available"};
  constexpr const char* kOnCpu[] = {" on cpu", " on the cpu", " on a cpu", " for cpu"};
  constexpr const char* kNot[] = {"not ", "cannot", "n't ", "unsupported"};
  constexpr const char* kOnGpu[] = {"cuda device", "on cuda",          "on gpu",     "on a gpu",
                                    " a gpu",      "presence of cuda", "cuda tensor"};
  constexpr const char* kOnly[] = {"require", "need", "only", "must"};
  if (probe.device != "cpu") return false;
  const std::string message = absl::AsciiStrToLower(exception.message);
  if (HasOneOf(message, kHardware)) return true;
  // "Sinks cannot be run on CPU", "requires a CUDA device", "only supported on GPUs".
  for (absl::string_view sentence : absl::StrSplit(message, absl::ByAnyChar(".\n"))) {
    if (HasOneOf(sentence, kOnCpu) && HasOneOf(sentence, kNot)) return true;
    if (HasOneOf(sentence, kOnGpu) && HasOneOf(sentence, kOnly)) return true;
  }
  return false;
}

bool IsRefusal(const ObservedException& exception, const Probe& probe) {
  const ObservedFrame* frame = DeepestFrame(exception);
  if (frame == nullptr) return false;
  if (IsOfTheKernel(*frame, probe)) return KernelRefuses(exception, probe);
  if (frame->owner != FrameOwner::kEngine && frame->owner != FrameOwner::kLibrary) return false;
  if (frame->statement != "raise" && frame->statement != "assert") return false;
  if (frame->statement == "assert" && absl::StrContains(frame->text, "isinstance(")) return false;
  if (ContradictsTheProbe(exception, probe)) return false;
  const std::string message = absl::AsciiStrToLower(WithoutPaths(exception.message));
  return NamesAsked(message, probe) || NamesSomeBackend(SupportedList(message)) ||
         RefusesSomethingElse(message, probe);
}

}  // namespace bkm
