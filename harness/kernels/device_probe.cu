// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "harness/kernels/device_probe.h"

namespace {

constexpr int kNumbers = 256;

__global__ void Square(int* numbers) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kNumbers) numbers[i] = i * i;
}

int32_t Compute(int* device_numbers) {
  Square<<<2, kNumbers / 2>>>(device_numbers);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  int numbers[kNumbers] = {};
  // Waits for the kernel and reports its errors.
  const cudaError_t error =
      cudaMemcpy(numbers, device_numbers, sizeof(numbers), cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return error;
  for (int i = 0; i < kNumbers; ++i) {
    if (numbers[i] != i * i) return -1;
  }
  return 0;
}

}  // namespace

int32_t BkmCudaDeviceCount(char* message, int32_t message_size) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    // Without a driver the runtime reports "insufficient" and driver version 0.
    int driver = 0;
    if (error == cudaErrorNoDevice || (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0))
      return 0;
  }
  std::snprintf(message, message_size, "%s", cudaGetErrorString(error));
  return -1;
}

int32_t BkmCudaDeviceAt(int32_t index, BkmCudaDevice* device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess)
    return error;
  std::memset(device, 0, sizeof(*device));
  std::snprintf(device->name, sizeof(device->name), "%s", properties.name);
  device->compute_major = properties.major;
  device->compute_minor = properties.minor;
  device->multiprocessors = properties.multiProcessorCount;
  device->memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  return 0;
}

int32_t BkmCudaDeviceComputes(int32_t index) {
  if (const cudaError_t error = cudaSetDevice(index); error != cudaSuccess) return error;
  int* numbers = nullptr;
  if (const cudaError_t error = cudaMalloc(&numbers, kNumbers * sizeof(int)); error != cudaSuccess)
    return error;
  const int32_t result = Compute(numbers);
  const cudaError_t freed = cudaFree(numbers);
  return result != 0 ? result : freed;
}
