// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FindDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
  void TearDown() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }

  // What is found where the driver's program is this shell script.
  static absl::StatusOr<std::vector<CudaDevice>> Found(const std::string& script) {
    const fs::path program = fs::path(::testing::TempDir()) / "nvidia-smi";
    EXPECT_TRUE(WriteScratchFile(program, absl::StrCat("#!/bin/sh\n", script, "\n")).ok());
    fs::permissions(program, fs::perms::owner_all);
    return FindDevices(program);
  }
  static std::vector<std::string> Names(const std::string& script) {
    std::vector<std::string> names;
    const std::vector<CudaDevice> devices = *Found(script);
    for (const CudaDevice& device : devices) names.push_back(device.name);
    return names;
  }
  static constexpr char kTwo[] =
      "echo '9.0, 81559, 550.54.15, GPU-aa1, NVIDIA H100, 80GB'\n"
      "echo '7.5, 15360, 550.54.15, GPU-bb2, Tesla T4'";
};

TEST_F(FindDevicesTest, ReadsWhatTheDriverLists) {
  const std::vector<CudaDevice> devices = *Found(kTwo);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0], (CudaDevice{"NVIDIA H100, 80GB", 9, 0, 81559, "550.54.15"}));
  EXPECT_EQ(devices[1], (CudaDevice{"Tesla T4", 7, 5, 15360, "550.54.15"}));
}

TEST_F(FindDevicesTest, AMachineWithoutADriverHasNone) {
  EXPECT_TRUE(FindDevices("/nowhere/nvidia-smi")->empty());
  EXPECT_TRUE(Found("echo 'No devices were found'; exit 6")->empty());
  EXPECT_TRUE(Found("echo 'No devices were found'")->empty());
}

TEST_F(FindDevicesTest, ADriverThatDoesNotAnswerIsAnErrorInItsWords) {
  EXPECT_THAT(Found("echo 'Failed to initialize NVML: mismatch' >&2; exit 18").status().message(),
              HasSubstr("cannot list the CUDA devices: Failed to initialize NVML: mismatch"));
  EXPECT_THAT(Found("exit 9").status().message(), HasSubstr("exit code 9"));
  EXPECT_THAT(Found("echo '[N/A], 1, 2, 3, x'").status().message(),
              HasSubstr("unexpected line '[N/A], 1, 2, 3, x'"));
}

TEST_F(FindDevicesTest, OnlyVisibleDevicesCountInTheirOrder) {
  const auto names = [](const char* wanted) {
    ::setenv("CUDA_VISIBLE_DEVICES", wanted, 1);
    return Names(kTwo);
  };
  const std::string h100 = "NVIDIA H100, 80GB", t4 = "Tesla T4";
  EXPECT_EQ(names("1,0"), (std::vector{t4, h100}));
  EXPECT_EQ(names("GPU-bb"), (std::vector{t4}));
  EXPECT_EQ(names("1,7,0"), (std::vector{t4}));
  EXPECT_EQ(names(""), std::vector<std::string>());
  EXPECT_EQ(names("-1"), std::vector<std::string>());
}

}  // namespace
}  // namespace bkm
