// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/recomputed.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace bkm {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the context keeps beside tensors.
struct Kept : torch::CustomClassHolder {
  explicit Kept(TensorFunction to_keep) : function(std::move(to_keep)) {}
  TensorFunction function;
};

constexpr char kFunction[] = "function";

struct RecomputedFunction : torch::autograd::Function<RecomputedFunction> {
  // torch takes the tensors of a TensorList as inputs, but not those of a vector.
  static Tensor forward(AutogradContext* context, at::TensorList inputs,
                        const c10::intrusive_ptr<Kept>& kept) {
    context->save_for_backward(inputs.vec());
    context->saved_data[kFunction] = c10::IValue::make_capsule(kept);
    return kept->function(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto kept =
        c10::static_intrusive_pointer_cast<Kept>(context->saved_data[kFunction].toCapsule());
    variable_list inputs, needing;
    for (const Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().requires_grad_(saved.requires_grad()));
      if (saved.requires_grad()) needing.push_back(inputs.back());
    }
    variable_list found;
    {
      const at::AutoGradMode with_gradients(true);
      found = torch::autograd::grad({kept->function(inputs)}, needing, outputs);
    }
    variable_list gradients;
    auto next = found.begin();
    for (const Tensor& input : inputs)
      gradients.push_back(input.requires_grad() ? *next++ : Tensor());
    gradients.emplace_back();  // of `kept`
    return gradients;
  }
};

}  // namespace

Tensor Recomputed(TensorFunction function, const std::vector<Tensor>& inputs) {
  return RecomputedFunction::apply(at::TensorList(inputs),
                                   c10::make_intrusive<Kept>(std::move(function)));
}

}  // namespace bkm
