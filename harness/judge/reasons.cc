// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/reasons.h"

namespace bkm::reason {
namespace {

constexpr Entry kEntries[] = {
    {kModuleMissing, "a module that is imported does not exist"},
    {kNameMissing, "a name that is imported or used does not exist"},
    {kImportFailed, "an import failed for another reason"},
    {kAttributeMissing, "an object lacks an attribute"},
    {kUnexpectedKeyword, "a call passes a keyword that the callee does not take"},
    {kMissingArgument, "a call leaves out an argument that the callee needs"},
    {kTooManyArguments, "a call passes more positional arguments than the callee takes"},
    {kAssertion, "an assertion failed that does not name the asked option"},
    {kTypeError, "a value has the wrong type"},
    {kValueError, "a value is not accepted"},
    {kLookupFailed, "a look-up failed"},
    {kShapeError, "tensor shapes do not fit"},
    {kDtypeError, "tensor types do not fit"},
    {kNotImplemented, "the code reports that something is not implemented"},
    {kRaised, "another exception"},
    {kRefusedOption, "a clear error names the option that is not supported"},
    {kCrashed, "a signal ended the process from inside"},
    {kExited, "the process ended itself without finishing"},
    {kTimeout, "the time limit was hit twice, the second time alone and with twice the time"},
    {kLimitMemory, "the cell's own limit on memory was hit"},
    {kLimitOutput, "the cell's own limit on output was hit"},
    {kLimitProcesses, "the cell's own limit on processes was hit"},
    {kLimitEvents, "the cell reported more than a cell may report"},
    {kEvidenceMalformed, "what the cell reported, or a file that it wrote, cannot be read"},
    {kApiCheck, "the static check shows that importing the engine must fail; the cell was not run"},
    {kNoSolution, "no set of packages satisfies all declared requirements"},
    {kInstallFailed, "the environment or a source tree could not be made"},
    {kTreeNotAllowed, "the source tree has entries that are not allowed, or is too large"},
    {kSourceIncomplete,
     "the commit has no such package, or the repository on this machine lacks files of it"},
    {kRequirementMalformed,
     "a subject's declared requirements or the file that declares them cannot be read"},
    {kRequirementNotAllowed,
     "a subject declares a requirement that is no plain name with versions, such as a URL, a path "
     "or an option"},
    {kTimeoutOnce, "the time limit was hit once; the cell must be run again alone"},
    {kMachineMemory, "the machine ran out of memory"},
    {kDiskFull, "the disk is full"},
    {kFolderUnwritable, "the cell's folder in the run directory could not be written"},
    {kForkFailed, "the process could not be started"},
    {kKilled, "something outside the cell killed it"},
    {kWorkerLost, "the worker died or went silent"},
    {kCancelled, "the run was interrupted"},
    {kRegistryUnreachable, "a package registry did not answer"},
    {kOverrideIgnored, "the asked option was accepted and replaced by another"},
    {kOtherBackendRan, "the asked backend was built, but another one ran"},
    {kMaskMissing, "no mask reached the layers, and tokens see other documents or the future"},
    {kMaskLeak, "tokens see other documents"},
    {kMaskShort, "tokens do not see all of their own document's past"},
    {kMaskFuture, "tokens see later tokens of their own document"},
    {kMaskOffByOne, "a mask is wrong by one token at document boundaries or at a window's edge"},
    {kWindowTooWide, "a sliding window is missing or wider than asked"},
    {kWindowTooNarrow,
     "a sliding window is narrower than asked, or is there although none is asked"},
    {kWindowWrongLayers, "sliding windows are on other layers than asked"},
    {kNotFinite, "a number is NaN or infinite"},
    {kWrongShape, "a tensor that was reported has the wrong number of elements"},
    {kWeightsNotLoaded, "parameters after loading are not those of the file"},
    {kLossOff, "the loss is too far from the golden"},
    {kLogProbsOff, "log-probs per token are too far from the golden"},
    {kGradientsOff, "gradients are too far from the golden"},
    {kGradNormOff, "the total gradient norm is too far from the golden"},
    {kLearningRateOff, "the optimizer ran with another learning rate than asked"},
    {kClippingOff, "gradients were not clipped as asked"},
    {kUpdateOff, "the optimizer's update does not follow from its own gradients"},
    {kWitnessMissing, "the cell finished, but a fact that the verdict needs was not seen"},
    {kEvidenceUnreadable, "a file that the verdict needs is missing or corrupt"},
    {kDeviceMissing, "the cell needs a GPU, or another device than this machine has"},
    {kHarnessError, "the harness's own code failed"},
};

}  // namespace

std::span<const Entry> All() { return kEntries; }

}  // namespace bkm::reason
