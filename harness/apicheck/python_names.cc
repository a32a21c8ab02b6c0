// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/python_names.h"

#include <set>
#include <string>

#include "absl/strings/match.h"

namespace bkm {
namespace {

using Set = std::set<std::string, std::less<>>;

bool Contains(const Set& set, absl::string_view name) { return set.contains(std::string(name)); }

}  // namespace

bool IsDunder(absl::string_view name) {
  return name.size() > 4 && absl::StartsWith(name, "__") && absl::EndsWith(name, "__");
}

bool KeepsSignature(absl::string_view decorator) {
  static const Set& names = *new Set{"abc.abstractmethod",
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
  return Contains(names, decorator);
}

bool KeepsClass(absl::string_view decorator) {
  static const Set& names = *new Set{"dataclasses.dataclass",
                                     "functools.total_ordering",
                                     "typing.final",
                                     "typing.runtime_checkable",
                                     "typing_extensions.final",
                                     "typing_extensions.runtime_checkable"};
  return Contains(names, decorator);
}

bool AddsNoAttributes(absl::string_view base) {
  static const Set& names = *new Set{"abc.ABC", "builtins.object", "typing.Generic",
                                     "typing.Protocol", "typing_extensions.Protocol"};
  return Contains(names, base);
}

bool IsPlainBase(absl::string_view base) {
  // torch's metaclasses (of Tensor, ScriptModule) leave construction to __init__.
  return AddsNoAttributes(base) || absl::StartsWith(base, "torch.") ||
         absl::StartsWith(base, "collections.abc.");
}

bool LetsExceptionsPass(absl::string_view context_manager) {
  static const Set& names =
      *new Set{"builtins.open",     "contextlib.nullcontext", "torch.device",
               "torch.enable_grad", "torch.inference_mode",   "torch.no_grad"};
  return Contains(names, context_manager);
}

}  // namespace bkm
