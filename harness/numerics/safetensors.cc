// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The format: https://github.com/huggingface/safetensors#format
#include "harness/numerics/safetensors.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/check.h"
#include "harness/base/descriptor.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr uint64_t kMaxHeaderOfSubject = 16 << 20;

struct TypeRow {
  TensorType type;
  absl::string_view name;
  int64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {TensorType::kF64, "F64", 8},   {TensorType::kF32, "F32", 4},   {TensorType::kF16, "F16", 2},
    {TensorType::kBF16, "BF16", 2}, {TensorType::kI64, "I64", 8},   {TensorType::kI32, "I32", 4},
    {TensorType::kU8, "U8", 1},     {TensorType::kBool, "BOOL", 1},
};

const TypeRow& RowOf(TensorType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  HARNESS_CHECK(false) << "a type without a row";
  return kTypes[0];
}

// The number of elements; nullopt for a negative size or an overflow.
std::optional<int64_t> Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

// A list of non-negative integers, or nullopt.
std::optional<std::vector<int64_t>> Sizes(const Json* json) {
  if (!json || !json->is_array()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const Json& item : *json) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX) return std::nullopt;
    sizes.push_back(item.get<int64_t>());
  }
  return sizes;
}

// Checks one header entry; `data` is everything after the header.
absl::StatusOr<TensorView> ReadEntry(const Json& entry, absl::string_view data) {
  const auto child = [&](const char* key) -> const Json* {
    const auto it = entry.is_object() ? entry.find(key) : entry.end();
    return it == entry.end() ? nullptr : &*it;
  };
  const Json* type_name = child("dtype");
  const auto shape = Sizes(child("shape"));
  const auto offsets = Sizes(child("data_offsets"));
  if (!type_name || !type_name->is_string() || !shape || !offsets || offsets->size() != 2 ||
      entry.size() != 3) {
    return absl::InvalidArgumentError("it needs dtype, shape and two data_offsets, nothing else");
  }
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) {
    return type_name->get<std::string>() == r.name;
  });
  if (row == std::end(kTypes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dtype ", type_name->dump(), " is not supported"));
  }
  const auto numel = Product(*shape);
  int64_t bytes = 0;
  if (!numel || __builtin_mul_overflow(*numel, row->bytes, &bytes)) {
    return absl::InvalidArgumentError("its shape overflows");
  }
  const int64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > static_cast<int64_t>(data.size())) {
    return absl::InvalidArgumentError(absl::StrCat("its bytes ", begin, " to ", end,
                                                   " are not in the file, which has ", data.size(),
                                                   " bytes of data"));
  }
  if (end - begin != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its shape needs ", bytes, " bytes, but its offsets give ", end - begin));
  }
  return TensorView{row->type, *shape, *numel, data.substr(begin, end - begin)};
}

template <typename T>
std::string BytesOf(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <typename T>
T Element(absl::string_view bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double FromBF16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Of a finite number.
uint16_t ToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double FromF16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1f,
                 fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) return (sign ? -0x1p-24 : 0x1p-24) * fraction;  // subnormal or zero
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace

absl::string_view NameOf(TensorType type) { return RowOf(type).name; }
int64_t BytesPerElement(TensorType type) { return RowOf(type).bytes; }

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept { *this = std::move(other); }

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(mapping_, other.mapping_);
  std::swap(size_, other.size_);
  std::swap(bytes_, other.bytes_);
  std::swap(tensors_, other.tensors_);
  std::swap(metadata_, other.metadata_);
  return *this;
}

SafetensorsFile::~SafetensorsFile() {
  if (mapping_) ::munmap(mapping_, size_);
}

absl::Status SafetensorsFile::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(path_.string(), ": ", message));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const fs::path& path) {
  SafetensorsFile file;
  file.path_ = path;
  ASSIGN_OR_RETURN(const Descriptor opened, OpenRegularFile(path));
  struct stat status {};
  if (::fstat(opened.get(), &status) == 0) file.size_ = status.st_size;
  if (file.size_ < kLengthBytes)
    return file.Error("too short to be a safetensors file (was it cut off while being written?)");
  void* mapping = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, opened.get(), 0);
  if (mapping == MAP_FAILED) {
    return absl::UnavailableError(
        absl::StrCat("cannot map ", path.string(), ": ", std::strerror(errno)));
  }
  file.mapping_ = mapping;
  RETURN_IF_ERROR(file.ReadHeader({static_cast<const char*>(mapping), file.size_}, kMaxHeader));
  return file;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::FromBytes(std::string bytes, fs::path path) {
  SafetensorsFile file;
  file.path_ = std::move(path);
  file.bytes_ = std::make_unique<const std::string>(std::move(bytes));
  if (file.bytes_->size() < kLengthBytes)
    return file.Error("too short to be a safetensors file (was it cut off while being written?)");
  RETURN_IF_ERROR(file.ReadHeader(*file.bytes_, kMaxHeaderOfSubject));
  return file;
}

absl::Status SafetensorsFile::ReadHeader(absl::string_view all, uint64_t longest) {
  const uint64_t length = Element<uint64_t>(all, 0);
  if (length > longest || length > all.size() - kLengthBytes) {
    return Error(absl::StrCat("its header claims ", length, " bytes, but the file has ", all.size(),
                              " (not a safetensors file, or cut off)"));
  }
  ASSIGN_OR_RETURN(const Json header, ParseJson(all.substr(kLengthBytes, length),
                                                absl::StrCat(path_.string(), ": header")));
  if (!header.is_object()) return Error("its header is not a JSON object");
  const absl::string_view data = all.substr(kLengthBytes + length);
  std::vector<std::pair<absl::string_view, const std::string*>> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return Error("__metadata__ is not an object of strings");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Error("__metadata__ is not an object of strings");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<TensorView> view = ReadEntry(entry, data);
    if (!view.ok()) return Error(absl::StrCat("tensor '", name, "': ", view.status().message()));
    const auto at = tensors_.emplace(name, *std::move(view)).first;
    extents.emplace_back(at->second.bytes, &at->first);
  }
  // In data order, every tensor must start where the previous one ended.
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.data(), a.first.size()) < std::pair(b.first.data(), b.first.size());
  });
  const char* end = data.data();
  for (const auto& [bytes, name] : extents) {
    if (bytes.data() < end) return Error(absl::StrCat("tensor '", *name, "' overlaps another"));
    if (bytes.data() > end) return Error(absl::StrCat("unused bytes lie before '", *name, "'"));
    end = bytes.data() + bytes.size();
  }
  if (end != data.data() + data.size()) return Error("unused bytes lie after the last tensor");
  return absl::OkStatus();
}

absl::StatusOr<const TensorView*> SafetensorsFile::Find(const std::string& name) const {
  if (const auto it = tensors_.find(name); it != tensors_.end()) return &it->second;
  std::vector<std::string> known;
  for (const auto& [other, view] : tensors_) known.push_back(other);
  if (known.size() > 5) {  // too many names to list: keep only the hint
    const std::string hint = DidYouMean(name, known);
    return absl::NotFoundError(
        absl::StrCat(path_.string(), ": no tensor '", name, "'", hint[0] == ':' ? hint : ""));
  }
  return absl::NotFoundError(
      absl::StrCat(path_.string(), ": no tensor '", name, "'", DidYouMean(name, known)));
}

absl::StatusOr<std::vector<double>> SafetensorsFile::Doubles(const std::string& name) const {
  ASSIGN_OR_RETURN(const TensorView* view, Find(name));
  std::vector<double> values(view->numel);
  for (int64_t i = 0; i < view->numel; ++i) {
    switch (view->type) {
      case TensorType::kF64:
        values[i] = Element<double>(view->bytes, i);
        break;
      case TensorType::kF32:
        values[i] = Element<float>(view->bytes, i);
        break;
      case TensorType::kBF16:
        values[i] = FromBF16(Element<uint16_t>(view->bytes, i));
        break;
      case TensorType::kF16:
        values[i] = FromF16(Element<uint16_t>(view->bytes, i));
        break;
      default:
        return Error(absl::StrCat("tensor '", name, "' is ", std::string(NameOf(view->type)),
                                  ", but floating-point numbers are needed here"));
    }
  }
  return values;
}

absl::StatusOr<double> SafetensorsFile::Scalar(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::vector<double> values, Doubles(name));
  if (values.size() == 1) return values[0];
  return Error(absl::StrCat("tensor '", name, "' has ", values.size(), " elements, not one"));
}

absl::StatusOr<std::vector<int64_t>> SafetensorsFile::Ints(const std::string& name) const {
  ASSIGN_OR_RETURN(const TensorView* view, Find(name));
  if (view->type != TensorType::kI64) {
    return Error(
        absl::StrCat("tensor '", name, "' is ", NameOf(view->type), ", but I64 is needed here"));
  }
  std::vector<int64_t> values(view->numel);
  if (view->numel > 0) std::memcpy(values.data(), view->bytes.data(), view->bytes.size());
  return values;
}

NamedTensor NamedTensor::F64(std::string name, std::vector<int64_t> shape,
                             std::span<const double> values) {
  return {std::move(name), TensorType::kF64, std::move(shape), BytesOf(values)};
}
NamedTensor NamedTensor::F32(std::string name, std::vector<int64_t> shape,
                             std::span<const float> values) {
  return {std::move(name), TensorType::kF32, std::move(shape), BytesOf(values)};
}
NamedTensor NamedTensor::BF16(std::string name, std::vector<int64_t> shape,
                              std::span<const float> values) {
  std::vector<uint16_t> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = ToBF16(values[i]);
  return {std::move(name), TensorType::kBF16, std::move(shape),
          BytesOf(std::span<const uint16_t>(rounded))};
}
NamedTensor NamedTensor::I64(std::string name, std::vector<int64_t> shape,
                             std::span<const int64_t> values) {
  return {std::move(name), TensorType::kI64, std::move(shape), BytesOf(values)};
}

absl::Status WriteSafetensors(const fs::path& path, std::vector<NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(-BytesPerElement(a.type), a.name) <
           std::pair(-BytesPerElement(b.type), b.name);
  });
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t total = 0;
  for (const NamedTensor& tensor : tensors) {
    const auto numel = Product(tensor.shape);
    HARNESS_CHECK(numel &&
                  static_cast<size_t>(*numel * BytesPerElement(tensor.type)) == tensor.bytes.size())
        << tensor.name << ": shape and bytes differ";
    HARNESS_CHECK(!header.contains(tensor.name)) << tensor.name << " is written twice";
    header[tensor.name] = {{"dtype", std::string(NameOf(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {total, total + tensor.bytes.size()}}};
    total += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned to eight bytes
  const uint64_t length = text.size();
  std::string content;
  content.reserve(kLengthBytes + length + total);
  content.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  content += text;
  for (NamedTensor& tensor : tensors) {
    content += tensor.bytes;
    std::string().swap(tensor.bytes);  // frees the copy at once: a model is large
  }
  return WriteFile(path, content);
}

}  // namespace bkm
