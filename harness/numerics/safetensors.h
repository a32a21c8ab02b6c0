// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_SAFETENSORS_H_
#define HARNESS_NUMERICS_SAFETENSORS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// The element types of the format that bkm uses.
enum class TensorType { kF64, kF32, kF16, kBF16, kI64, kI32, kU8, kBool };

// The format's own names: "F64", "BF16", ...
absl::string_view NameOf(TensorType type);
int64_t BytesPerElement(TensorType type);

// One tensor of an open file, row-major and little-endian. A view into the file.
struct TensorView {
  TensorType type;
  std::vector<int64_t> shape;
  int64_t numel;
  absl::string_view bytes;
};

// A safetensors file, mapped into memory and checked as a whole when it is opened: sizes, types,
// offsets, no overlap, no hole, nothing after the last tensor. Every error names the path. Views
// live as long as the file.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::filesystem::path& path);
  // For content that a subject wrote: a mapped file that is cut off meanwhile would end the
  // process. `path` is for messages. Its header must be small.
  static absl::StatusOr<SafetensorsFile> FromBytes(std::string bytes, std::filesystem::path path);
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
  ~SafetensorsFile();

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_ ? bytes_->size() : size_); }
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  absl::StatusOr<const TensorView*> Find(const std::string& name) const;

  // All elements of a floating-point tensor (F64, F32, BF16, F16), each exactly.
  absl::StatusOr<std::vector<double>> Doubles(const std::string& name) const;
  // The element of a floating-point tensor with exactly one element.
  absl::StatusOr<double> Scalar(const std::string& name) const;
  // All elements of an I64 tensor.
  absl::StatusOr<std::vector<int64_t>> Ints(const std::string& name) const;

 private:
  SafetensorsFile() = default;
  absl::Status ReadHeader(absl::string_view all, uint64_t longest);
  absl::Status Error(absl::string_view message) const;

  std::filesystem::path path_;
  void* mapping_ = nullptr;
  size_t size_ = 0;                           // of the mapping
  std::unique_ptr<const std::string> bytes_;  // instead of a mapping
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written.
struct NamedTensor {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  std::string bytes;

  static NamedTensor F64(std::string name, std::vector<int64_t> shape, std::span<const double>);
  static NamedTensor F32(std::string name, std::vector<int64_t> shape, std::span<const float>);
  // Rounded to the nearest bf16, ties to even.
  static NamedTensor BF16(std::string name, std::vector<int64_t> shape, std::span<const float>);
  static NamedTensor I64(std::string name, std::vector<int64_t> shape, std::span<const int64_t>);
};

// Writes a temporary file beside `path` and renames it. Tensors with wider elements come first,
// then by name, in the order of the reference implementation. `metadata` becomes `__metadata__`.
absl::Status WriteSafetensors(const std::filesystem::path& path, std::vector<NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace bkm

#endif  // HARNESS_NUMERICS_SAFETENSORS_H_
