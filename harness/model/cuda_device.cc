// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cuda_device.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// The least compute capability for which the kernels of an attention exist.
struct Needed {
  const char* attention;
  int major;
  int minor;
  bool on_cpu = true;  // there is a stand-in, or torch has kernels
};
// flex: Triton (its README, "Compatibility"). varlen, flash_attention_2: the check at the head of
// ATen's flash_attn/flash_api.cpp, and the README of FlashAttention. flash_attention_3: the same
// README. flex_flash: the CuTe kernels of FlashAttention, from Hopper on; on a CPU, torch accepts
// the option and runs plain flex.
constexpr Needed kNeeded[] = {{"flex", 8, 0},
                              {"flex_attention", 8, 0},
                              {"varlen", 8, 0},
                              {"flash_attention_2", 8, 0},
                              {"flash_attention_3", 9, 0, /*on_cpu=*/false},
                              {"flex_flash", 9, 0, /*on_cpu=*/false}};

const Needed* NeededBy(const std::string& attention) {
  for (const Needed& needed : kNeeded)
    if (attention == needed.attention) return &needed;
  return nullptr;
}

std::string CapabilityText(int major, int minor) { return absl::StrCat(major, ".", minor); }

}  // namespace

void Describe(Fields& fields, CudaDevice& device) {
  fields.Field("name", device.name);
  fields.Int("major", device.major, 0, 1 << 10);
  fields.Int("minor", device.minor, 0, 1 << 10);
  fields.Int("memory_mib", device.memory_mib, int64_t{0}, int64_t{1} << 40);
  fields.Field("driver", device.driver);
}

std::string DevicesText(const std::vector<CudaDevice>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size();) {
    size_t end = i;
    while (end < devices.size() && devices[end] == devices[i]) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ");
    if (end - i > 1) absl::StrAppend(&text, end - i, " x ");
    absl::StrAppend(&text, devices[i].name);
    i = end;
  }
  if (!devices.empty()) absl::StrAppend(&text, ", driver ", devices[0].driver);
  return text;
}

std::string WhyDevicesCannot(const Probe& probe, const std::vector<CudaDevice>& devices) {
  const Needed* needed = NeededBy(probe.attention);
  if (probe.device == "cpu") {
    if (needed == nullptr || needed->on_cpu) return "";
    return absl::StrCat(probe.attention, " needs a CUDA device of compute capability ",
                        CapabilityText(needed->major, needed->minor),
                        " or higher, and the device is a CPU");
  }
  if (devices.empty()) {
    return "it asks for a CUDA device, and this machine has none (bkm pack writes it for a machine "
           "that has one)";
  }
  const int ranks = probe.layout.ranks();
  // NCCL refuses two ranks on one device.
  if (ranks > static_cast<int>(devices.size())) {
    return absl::StrCat("layout=", LayoutText(probe.layout), " needs ", ranks,
                        " CUDA devices, and this machine has ", devices.size());
  }
  if (needed == nullptr) return "";
  for (int i = 0; i < ranks; ++i) {
    const CudaDevice& device = devices[i];
    if (std::tie(device.major, device.minor) >= std::tie(needed->major, needed->minor)) continue;
    return absl::StrCat(probe.attention, " needs compute capability ",
                        CapabilityText(needed->major, needed->minor), " or higher, and ",
                        device.name, " has ", CapabilityText(device.major, device.minor));
  }
  return "";
}

bool IsForCpus(absl::string_view torch) { return absl::EndsWith(torch, "+cpu"); }

std::string WhyTorchCannot(const Probe& probe, const std::string& torch) {
  if (probe.device == "cpu" || !IsForCpus(torch)) return "";
  return absl::StrCat("it asks for a CUDA device, and its runtime's torch ", torch,
                      " is built for CPUs");
}

int CellsAtOnce(const std::vector<CudaDevice>& devices, int memory_mib) {
  if (devices.empty() || memory_mib <= 0) return 1;
  return std::max(1, static_cast<int>(devices[0].memory_mib / memory_mib));
}

}  // namespace bkm
