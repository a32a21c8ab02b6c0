// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

fs::path TempFile(absl::string_view name) {
  return fs::path(testing::TempDir()) / std::string(name);
}

// A file with this header, preceded by its correct length and followed by `data_bytes` zero bytes.
fs::path RawFile(absl::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  const fs::path path = TempFile("raw.safetensors");
  EXPECT_TRUE(WriteFile(path, absl::StrCat(std::string(reinterpret_cast<const char*>(&length), 8),
                                           header, std::string(data_bytes, '\0')))
                  .ok());
  return path;
}

std::string OpenError(const fs::path& path) {
  const std::string message(SafetensorsFile::Open(path).status().message());
  EXPECT_THAT(message, HasSubstr(path.string()));
  EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
  return message;
}

std::string ErrorOfHeader(absl::string_view header, size_t data_bytes) {
  return OpenError(RawFile(header, data_bytes));
}

TEST(SafetensorsTest, Bf16IsTheNearestAndTiesGoToEven) {
  const fs::path path = TempFile("bf16.safetensors");
  const std::vector<float> values = {
      1.0f, 1.0f + 0x1p-8f, 1.0f + 0x1p-8f + 0x1p-20f, 1.0f + 3 * 0x1p-8f, -(1.0f + 0x1p-9f), 0.0f};
  ASSERT_TRUE(WriteSafetensors(path, {NamedTensor::BF16("b", {6}, values)}).ok());
  EXPECT_THAT(*SafetensorsFile::Open(path)->Doubles("b"),
              ElementsAre(1.0, 1.0, 1.0 + 0x1p-7, 1.0 + 0x1p-6, -1.0, 0.0));
}

TEST(SafetensorsTest, ReadsWhatItWrote) {
  const fs::path path = TempFile("all.safetensors");
  const std::vector<double> doubles = {1.5, -0.0, 1e300};
  const std::vector<float> floats = {1, 2, 3, 4, 5, 0x1p-149f};
  const std::vector<int64_t> ints = {-1, INT64_MAX};
  ASSERT_TRUE(WriteSafetensors(path,
                               {NamedTensor::F64("d", {3}, doubles),
                                NamedTensor::F32("f", {2, 3}, floats),
                                NamedTensor::I64("i", {2}, ints),
                                NamedTensor::F32("none", {0, 4}, {}),
                                {"b", TensorType::kBF16, {2}, std::string("\x80\x3f\x00\xc0", 4)}},
                               {{"format", "pt"}})
                  .ok());
  const SafetensorsFile file = *SafetensorsFile::Open(path);
  EXPECT_EQ(*file.Doubles("d"), doubles);
  EXPECT_EQ(*file.Doubles("f"), std::vector<double>(floats.begin(), floats.end()));
  EXPECT_THAT((*file.Find("f"))->shape, ElementsAre(2, 3));
  EXPECT_EQ(*file.Ints("i"), ints);
  EXPECT_THAT(*file.Doubles("none"), IsEmpty());
  EXPECT_THAT(*file.Doubles("b"), ElementsAre(1.0, -2.0));
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair("format", "pt")));
  EXPECT_EQ(file.tensors().size(), 5);
}

TEST(SafetensorsTest, ReadsEveryHalfPrecisionKindOfNumber) {
  const fs::path path = TempFile("half.safetensors");
  // 1, -2, the largest subnormal, the smallest, 65504, -0, infinity.
  const uint16_t bits[] = {0x3c00, 0xc000, 0x03ff, 0x0001, 0x7bff, 0x8000, 0x7c00};
  const std::string bytes(reinterpret_cast<const char*>(bits), sizeof bits);
  ASSERT_TRUE(WriteSafetensors(path, {{"h", TensorType::kF16, {7}, bytes}}).ok());
  EXPECT_THAT(*SafetensorsFile::Open(path)->Doubles("h"),
              ElementsAre(1.0, -2.0, 1023 * 0x1p-24, 0x1p-24, 65504.0, -0.0,
                          std::numeric_limits<double>::infinity()));
}

TEST(SafetensorsTest, TheDataStartsAlignedAndWideElementsComeFirst) {
  const fs::path path = TempFile("order.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {NamedTensor::F32("a", {1}, std::vector<float>{1}),
                                      NamedTensor::F64("b", {1}, std::vector<double>{2})})
                  .ok());
  const std::string content = *ReadFile(path);
  EXPECT_EQ(content.substr(8),
            absl::StrCat(R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)",
                         R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}    )",
                         std::string("\0\0\0\0\0\0\0\x40\0\0\x80\x3f", 12)));
  EXPECT_EQ((content.size() - 12) % 8, 0);
}

TEST(SafetensorsTest, AMissingOrShortFileIsOneSentence) {
  EXPECT_THAT(OpenError("/nowhere/x.safetensors"), HasSubstr("No such file"));
  ASSERT_TRUE(WriteFile(TempFile("short"), "1234567").ok());
  EXPECT_THAT(OpenError(TempFile("short")), HasSubstr("too short"));
  ASSERT_TRUE(WriteFile(TempFile("text"), "this is not a tensor at all").ok());
  EXPECT_THAT(OpenError(TempFile("text")), HasSubstr("its header claims"));
}

TEST(SafetensorsTest, ACutOffFileIsRefused) {
  const fs::path path = TempFile("cut.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {NamedTensor::F64("d", {2}, std::vector<double>{1, 2})}).ok());
  const std::string content = *ReadFile(path);
  ASSERT_TRUE(WriteFile(path, absl::string_view(content).substr(0, content.size() - 1)).ok());
  EXPECT_THAT(OpenError(path), HasSubstr("tensor 'd': its bytes 0 to 16 are not in the file"));
}

TEST(SafetensorsTest, BadHeadersAreRefused) {
  EXPECT_THAT(ErrorOfHeader("{oops", 0), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOfHeader("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOfHeader(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[]}})", 4), HasSubstr("data_offsets"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("dtype \"F99\" is not supported"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor 'a'"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor 'a'"));
  EXPECT_THAT(
      ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                    0),
      HasSubstr("overflows"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("its shape needs 8 bytes, but its offsets give 4"));
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
              HasSubstr("4 to 0"));
}

TEST(SafetensorsTest, OverlapsHolesAndTrailingBytesAreRefused) {
  const auto two = [](int begin) {
    return absl::StrCat(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)",
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[)", begin, ",", begin + 4,
                        "]}}");
  };
  EXPECT_TRUE(SafetensorsFile::Open(RawFile(two(8), 12)).ok());
  EXPECT_THAT(ErrorOfHeader(two(4), 8), HasSubstr("tensor 'b' overlaps another"));
  EXPECT_THAT(ErrorOfHeader(two(12), 16), HasSubstr("unused bytes lie before 'b'"));
  EXPECT_THAT(ErrorOfHeader(two(8), 13), HasSubstr("unused bytes lie after the last tensor"));
}

TEST(SafetensorsTest, AskingForTheWrongTensorSaysWhatIsThere) {
  const fs::path path = TempFile("ask.safetensors");
  ASSERT_TRUE(
      WriteSafetensors(path, {NamedTensor::F64("step0/loss", {2}, std::vector<double>{1, 2}),
                              NamedTensor::I64("ids", {1}, std::vector<int64_t>{1})})
          .ok());
  const SafetensorsFile file = *SafetensorsFile::Open(path);
  EXPECT_THAT(std::string(file.Doubles("step0/los").status().message()),
              HasSubstr("did you mean 'step0/loss'?"));
  EXPECT_THAT(std::string(file.Doubles("ids").status().message()), HasSubstr("is I64"));
  EXPECT_THAT(std::string(file.Ints("step0/loss").status().message()), HasSubstr("is F64"));
  EXPECT_THAT(std::string(file.Scalar("step0/loss").status().message()), HasSubstr("2 elements"));
}

}  // namespace
}  // namespace bkm
