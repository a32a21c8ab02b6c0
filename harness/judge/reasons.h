// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_REASONS_H_
#define HARNESS_JUDGE_REASONS_H_

#include <span>

// Every reason code that a verdict can carry. Written to golden/ and published: add, never rename.
namespace bkm::reason {

// The cell stopped with a Python exception.
inline constexpr char kModuleMissing[] = "module-missing";
inline constexpr char kNameMissing[] = "name-missing";
inline constexpr char kImportFailed[] = "import-failed";
inline constexpr char kAttributeMissing[] = "attribute-missing";
inline constexpr char kUnexpectedKeyword[] = "unexpected-keyword";
inline constexpr char kMissingArgument[] = "missing-argument";
inline constexpr char kTooManyArguments[] = "too-many-arguments";
inline constexpr char kAssertion[] = "assertion";
inline constexpr char kTypeError[] = "type-error";
inline constexpr char kValueError[] = "value-error";
inline constexpr char kLookupFailed[] = "lookup-failed";
inline constexpr char kShapeError[] = "shape-error";
inline constexpr char kDtypeError[] = "dtype-error";
inline constexpr char kNotImplemented[] = "not-implemented";
inline constexpr char kRaised[] = "raised";
inline constexpr char kRanksStuck[] = "ranks-stuck";
inline constexpr char kRefusedOption[] = "refused-option";
// The cell's process stopped without one.
inline constexpr char kCrashed[] = "crashed";
inline constexpr char kExited[] = "exited";
inline constexpr char kTimeout[] = "timeout";
inline constexpr char kLimitMemory[] = "limit-memory";
inline constexpr char kLimitOutput[] = "limit-output";
inline constexpr char kLimitFiles[] = "limit-files";
inline constexpr char kLimitCpu[] = "limit-cpu";
inline constexpr char kLimitProcesses[] = "limit-processes";
inline constexpr char kLimitEvents[] = "limit-events";
inline constexpr char kEvidenceMalformed[] = "evidence-malformed";
// Before the cell ran (set by the runner).
inline constexpr char kApiCheck[] = "api-check";
inline constexpr char kNoSolution[] = "no-solution";
inline constexpr char kInstallFailed[] = "install-failed";
inline constexpr char kTreeNotAllowed[] = "tree-not-allowed";
inline constexpr char kSourceIncomplete[] = "source-incomplete";
inline constexpr char kRequirementMalformed[] = "requirement-malformed";
inline constexpr char kRequirementNotAllowed[] = "requirement-not-allowed";
// Not the subject's fault.
inline constexpr char kTimeoutOnce[] = "timeout-once";
inline constexpr char kMachineMemory[] = "machine-memory";
inline constexpr char kDiskFull[] = "disk-full";
inline constexpr char kForkFailed[] = "fork-failed";
inline constexpr char kFolderUnwritable[] = "folder-unwritable";
inline constexpr char kKilled[] = "killed";
inline constexpr char kWorkerLost[] = "worker-lost";
inline constexpr char kCancelled[] = "cancelled";
inline constexpr char kRegistryUnreachable[] = "registry-unreachable";
inline constexpr char kReferenceMissing[] = "reference-missing";
// The cell ran, but did not do what was asked.
inline constexpr char kOverrideIgnored[] = "override-ignored";
inline constexpr char kPrecisionIgnored[] = "precision-ignored";
inline constexpr char kConfigIgnored[] = "config-ignored";
inline constexpr char kOtherBackendRan[] = "other-backend-ran";
inline constexpr char kMaskMissing[] = "mask-missing";
inline constexpr char kMaskLeak[] = "mask-leak";
inline constexpr char kMaskShort[] = "mask-short";
inline constexpr char kMaskFuture[] = "mask-future";
inline constexpr char kMaskOffByOne[] = "mask-off-by-one";
inline constexpr char kWindowTooWide[] = "window-too-wide";
inline constexpr char kWindowTooNarrow[] = "window-too-narrow";
inline constexpr char kWindowWrongLayers[] = "window-wrong-layers";
inline constexpr char kBlockTable[] = "block-table";
inline constexpr char kKernelArguments[] = "kernel-arguments";
inline constexpr char kNotFinite[] = "not-finite";
inline constexpr char kWrongShape[] = "wrong-shape";
inline constexpr char kWeightsNotLoaded[] = "weights-not-loaded";
inline constexpr char kLossOff[] = "loss-off";
inline constexpr char kLogProbsOff[] = "log-probs-off";
inline constexpr char kEntropyOff[] = "entropy-off";
inline constexpr char kGradientsOff[] = "gradients-off";
inline constexpr char kGradNormOff[] = "grad-norm-off";
inline constexpr char kLearningRateOff[] = "learning-rate-off";
inline constexpr char kClippingOff[] = "clipping-off";
inline constexpr char kUpdateOff[] = "update-off";
inline constexpr char kExpertBiasOff[] = "expert-bias-off";
inline constexpr char kDocumentsOff[] = "documents-off";
inline constexpr char kLabelsOff[] = "labels-off";
inline constexpr char kLossWeightsOff[] = "loss-weights-off";
inline constexpr char kRankDocuments[] = "rank-documents";
inline constexpr char kRanksDiffer[] = "ranks-differ";
inline constexpr char kExportNames[] = "export-names";
inline constexpr char kExportOff[] = "export-off";
inline constexpr char kResumeOff[] = "resume-off";
// The harness or the device cannot tell.
inline constexpr char kWitnessMissing[] = "witness-missing";
inline constexpr char kEvidenceUnreadable[] = "evidence-unreadable";
inline constexpr char kDeviceMissing[] = "device-missing";
inline constexpr char kNotOffered[] = "not-offered";
inline constexpr char kHarnessError[] = "harness-error";

struct Entry {
  const char* code;
  const char* meaning;  // one line for people
};
// All codes, in the order above.
std::span<const Entry> All();

}  // namespace bkm::reason

#endif  // HARNESS_JUDGE_REASONS_H_
