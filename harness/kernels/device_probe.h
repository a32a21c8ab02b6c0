// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// C interface of libdevice_probe.so: which CUDA devices this machine has. A library that is opened
// at run time, so that nothing of ours needs CUDA to start.
#ifndef HARNESS_KERNELS_DEVICE_PROBE_H_
#define HARNESS_KERNELS_DEVICE_PROBE_H_

#include <stdint.h>

extern "C" {

struct BkmCudaDevice {
  char name[256];
  int32_t compute_major;
  int32_t compute_minor;
  int32_t multiprocessors;
  int64_t memory_bytes;
};

// The number of devices; 0 when there is no driver or no device; -1 when the driver failed, with
// `error` (of `error_size` bytes, always terminated) saying why.
int32_t BkmCudaDeviceCount(char* error, int32_t error_size);

// Fills `device` for device `index`; returns 0, or a cudaError_t.
int32_t BkmCudaDeviceAt(int32_t index, struct BkmCudaDevice* device);

// Runs a small kernel on device `index` and checks its result: 0 when the device really computes,
// else a cudaError_t, or -1 for a wrong result.
int32_t BkmCudaDeviceComputes(int32_t index);

}  // extern "C"

#endif  // HARNESS_KERNELS_DEVICE_PROBE_H_
