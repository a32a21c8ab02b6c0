// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cuda_device.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

const CudaDevice kHopper = {"NVIDIA H100", 9, 0, 81559, "550.54"};
const CudaDevice kAmpere = {"NVIDIA A100", 8, 0, 40960, "550.54"};
const CudaDevice kTuring = {"Tesla T4", 7, 5, 15360, "550.54"};

Probe OnCuda(const std::string& attention, int ranks = 1) {
  Probe probe;
  probe.device = "cuda";
  probe.attention = attention;
  probe.layout.dp_shard = ranks;
  return probe;
}

TEST(CudaDeviceTest, EqualDevicesAreCounted) {
  EXPECT_EQ(DevicesText({}), "");
  EXPECT_EQ(DevicesText({kHopper}), "NVIDIA H100, driver 550.54");
  EXPECT_EQ(DevicesText({kHopper, kHopper, kTuring}), "2 x NVIDIA H100, Tesla T4, driver 550.54");
}

TEST(CudaDeviceTest, ADeviceRunsWhatItHasKernelsFor) {
  for (const char* attention : {"flex", "flex_attention", "varlen", "flash_attention_2"}) {
    EXPECT_EQ(WhyDevicesCannot(OnCuda(attention), {kAmpere}), "");
    EXPECT_EQ(
        WhyDevicesCannot(OnCuda(attention), {kTuring}),
        std::string(attention) + " needs compute capability 8.0 or higher, and Tesla T4 has 7.5");
  }
  for (const char* attention : {"sdpa", "eager"})
    EXPECT_EQ(WhyDevicesCannot(OnCuda(attention), {kTuring}), "");
  EXPECT_EQ(WhyDevicesCannot(OnCuda("flex_flash"), {kHopper}), "");
  EXPECT_EQ(WhyDevicesCannot(OnCuda("flash_attention_3"), {kHopper}), "");
  EXPECT_EQ(WhyDevicesCannot(OnCuda("flex_flash"), {kAmpere}),
            "flex_flash needs compute capability 9.0 or higher, and NVIDIA A100 has 8.0");
}

TEST(CudaDeviceTest, EachRankNeedsADevice) {
  EXPECT_EQ(WhyDevicesCannot(OnCuda("sdpa", 2), {kHopper, kHopper}), "");
  EXPECT_EQ(WhyDevicesCannot(OnCuda("sdpa", 2), {kHopper}),
            "layout=dp_shard=2 needs 2 CUDA devices, and this machine has 1");
  // Only the devices that the ranks use count.
  EXPECT_EQ(WhyDevicesCannot(OnCuda("flex"), {kHopper, kTuring}), "");
  EXPECT_EQ(WhyDevicesCannot(OnCuda("flex", 2), {kHopper, kTuring}),
            "flex needs compute capability 8.0 or higher, and Tesla T4 has 7.5");
}

TEST(CudaDeviceTest, AProbeOfACpuNeedsNoDevice) {
  EXPECT_EQ(WhyDevicesCannot(Probe(), {}), "");
  EXPECT_EQ(WhyTorchCannot(Probe(), "2.13.0+cpu"), "");
}

TEST(CudaDeviceTest, ATorchForCpusCannotUseADevice) {
  EXPECT_EQ(WhyTorchCannot(OnCuda("flex"), "2.13.0+cpu"),
            "it asks for a CUDA device, and its runtime's torch 2.13.0+cpu is built for CPUs");
  EXPECT_EQ(WhyTorchCannot(OnCuda("flex"), "2.13.0+cu130"), "");
  EXPECT_EQ(WhyTorchCannot(OnCuda("flex"), "2.13.0"), "");
}

TEST(CudaDeviceTest, MemoryDecidesHowManyCellsShareADevice) {
  EXPECT_EQ(CellsAtOnce({kHopper}, 8192), 9);
  EXPECT_EQ(CellsAtOnce({kTuring, kHopper}, 8192), 1);
  EXPECT_EQ(CellsAtOnce({kTuring}, 65536), 1);
  EXPECT_EQ(CellsAtOnce({}, 8192), 1);
}

}  // namespace
}  // namespace bkm
