// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/bf16_products.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <torch/library.h>

namespace bkm {
namespace {

using at::Scalar;
using at::Tensor;

bool IsBF16(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16;
}

Tensor Wide(const Tensor& tensor) { return tensor.to(at::kFloat); }
Tensor Rounded(const Tensor& tensor) { return tensor.to(at::kBFloat16); }

Tensor Mm(const Tensor& a, const Tensor& b) {
  if (!IsBF16(a, b)) return at::cpu::mm(a, b);
  return Rounded(at::cpu::mm(Wide(a), Wide(b)));
}

Tensor Bmm(const Tensor& a, const Tensor& b) {
  if (!IsBF16(a, b)) return at::cpu::bmm(a, b);
  return Rounded(at::cpu::bmm(Wide(a), Wide(b)));
}

Tensor Addmm(const Tensor& added, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  if (!IsBF16(a, b)) return at::cpu::addmm(added, a, b, beta, alpha);
  return Rounded(at::cpu::addmm(Wide(added), Wide(a), Wide(b), beta, alpha));
}

Tensor Baddbmm(const Tensor& added, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha) {
  if (!IsBF16(a, b)) return at::cpu::baddbmm(added, a, b, beta, alpha);
  return Rounded(at::cpu::baddbmm(Wide(added), Wide(a), Wide(b), beta, alpha));
}

// Drops LibTorch's warning about replaced kernels: replacing them is the purpose.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

bool OneDnnComputesBF16() {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("mkldnn::_is_mkldnn_bf16_supported", "")
      .typed<bool()>()
      .call();
}

}  // namespace

void ComputeBF16ProductsInFP32() {
  // Never destroyed: the registrations last as long as the object.
  static torch::Library* const library = [] {
    Silence silence;
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    auto* replaced =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    replaced->impl("mm", Mm);
    replaced->impl("bmm", Bmm);
    replaced->impl("addmm", Addmm);
    replaced->impl("baddbmm", Baddbmm);
    return replaced;
  }();
  (void)library;
}

void ComputeBF16ProductsFast() {
  if (!OneDnnComputesBF16()) ComputeBF16ProductsInFP32();
}

}  // namespace bkm
