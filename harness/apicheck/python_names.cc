// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/python_names.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"

namespace bkm {
namespace {

constexpr absl::string_view kSignatureKeepingDecorators[] = {
    "abc.abstractmethod",
    "contextlib.contextmanager",
    "functools.cache",
    "functools.lru_cache",
    "torch.compiler.disable",
    "torch.distributed.elastic.multiprocessing.errors.record",
    "torch.enable_grad",
    "torch.inference_mode",
    "torch.no_grad",
    "typing.final",
    "typing.no_type_check",
    "typing.override",
    "typing_extensions.override"};

constexpr absl::string_view kClassKeepingDecorators[] = {
    "dataclasses.dataclass",    "functools.total_ordering", "typing.final",
    "typing.runtime_checkable", "typing_extensions.final",  "typing_extensions.runtime_checkable"};

constexpr absl::string_view kBasesWithoutAttributes[] = {"abc.ABC", "builtins.object",
                                                         "typing.Generic", "typing.Protocol",
                                                         "typing_extensions.Protocol"};

constexpr absl::string_view kTransparentContextManagers[] = {
    "builtins.open",     "contextlib.nullcontext", "torch.device",
    "torch.enable_grad", "torch.inference_mode",   "torch.no_grad"};

template <typename Names>
bool Contains(const Names& names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool IsDunder(absl::string_view name) {
  return name.size() > 4 && absl::StartsWith(name, "__") && absl::EndsWith(name, "__");
}

bool KeepsSignature(absl::string_view decorator) {
  return Contains(kSignatureKeepingDecorators, decorator);
}

bool KeepsClass(absl::string_view decorator) {
  return Contains(kClassKeepingDecorators, decorator);
}

bool AddsNoAttributes(absl::string_view base) { return Contains(kBasesWithoutAttributes, base); }

bool IsPlainBase(absl::string_view base) {
  // torch's metaclasses (of Tensor, ScriptModule) leave construction to __init__.
  return AddsNoAttributes(base) || absl::StartsWith(base, "torch.") ||
         absl::StartsWith(base, "collections.abc.");
}

bool LetsExceptionsPass(absl::string_view context_manager) {
  return Contains(kTransparentContextManagers, context_manager);
}

}  // namespace bkm
