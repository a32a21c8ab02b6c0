// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/kernels/device_probe.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace {

class DeviceProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen("harness/kernels/libdevice_probe.so", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <typename F>
  F* Function(const char* name) {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  int32_t Count() {
    char error[256] = "";
    const int32_t count = Function<decltype(BkmCudaDeviceCount)>("BkmCudaDeviceCount")(
        error, static_cast<int32_t>(sizeof(error)));
    EXPECT_GE(count, 0) << error;
    return count;
  }
  void* library_ = nullptr;
};

TEST_F(DeviceProbeTest, DeviceBeyondTheLastIsAnError) {
  BkmCudaDevice device;
  EXPECT_NE(Function<decltype(BkmCudaDeviceAt)>("BkmCudaDeviceAt")(Count(), &device), 0);
}

TEST_F(DeviceProbeTest, EveryDeviceIsDescribedAndComputes) {
  const int32_t count = Count();
  if (count == 0) GTEST_SKIP() << "no GPU here";
  for (int32_t index = 0; index < count; ++index) {
    BkmCudaDevice device;
    ASSERT_EQ(Function<decltype(BkmCudaDeviceAt)>("BkmCudaDeviceAt")(index, &device), 0);
    EXPECT_NE(std::string(device.name), "");
    EXPECT_GE(device.compute_major, 5) << device.name;
    EXPECT_GT(device.multiprocessors, 0) << device.name;
    EXPECT_GT(device.memory_bytes, int64_t{1} << 30) << device.name;
    EXPECT_EQ(Function<decltype(BkmCudaDeviceComputes)>("BkmCudaDeviceComputes")(index), 0)
        << device.name;
    std::printf("%s, compute %d.%d, %d multiprocessors, %lld MiB\n", device.name,
                device.compute_major, device.compute_minor, device.multiprocessors,
                static_cast<long long>(device.memory_bytes >> 20));
  }
}

}  // namespace
