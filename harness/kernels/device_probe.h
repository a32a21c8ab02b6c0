// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// C interface of libdevice_probe.so, which lists this machine's CUDA devices. The library is opened
// at run time, so that no program of ours needs CUDA to start.
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

// The number of devices; 0 without a driver or device; -1 if the driver failed, with the reason in
// `error` (of `error_size` bytes, always terminated).
int32_t BkmCudaDeviceCount(char* error, int32_t error_size);

// Fills `device` for device `index`; returns 0, or a cudaError_t.
int32_t BkmCudaDeviceAt(int32_t index, struct BkmCudaDevice* device);

// Runs a small kernel on device `index` and checks its result: 0 if the device computes, else a
// cudaError_t, or -1 for a wrong result.
int32_t BkmCudaDeviceComputes(int32_t index);

}  // extern "C"

#endif  // HARNESS_KERNELS_DEVICE_PROBE_H_
