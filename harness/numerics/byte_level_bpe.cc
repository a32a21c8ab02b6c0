// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/byte_level_bpe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/check.h"

namespace bkm {
namespace {

// None of "system", "user" and "assistant": no merge of theirs touches a word.
constexpr char kLetters[] = "bcdfghjklopqvwxz";
// One content in so many places is other than a word.
constexpr uint64_t kWordsPerOther = 12;
// After a space: an accent, an ideogram, an emoji, a digit.
constexpr const char* kOthers[] = {" \xc3\xa9", " \xe6\x9d\xb1", " \xf0\x9f\x99\x82", " 7"};

std::string Utf8(int codepoint) {
  if (codepoint < 0x80) return std::string(1, static_cast<char>(codepoint));
  return {static_cast<char>(0xc0 | (codepoint >> 6)), static_cast<char>(0x80 | (codepoint & 0x3f))};
}

// GPT-2's bytes_to_unicode: printable bytes stand for themselves, the others, in their order, for
// the code points from 256.
std::vector<std::string> SpelledBytes() {
  std::vector<std::string> spelled;
  int others = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                           (byte >= 0xae && byte <= 0xff);
    spelled.push_back(Utf8(is_itself ? byte : 256 + others++));
  }
  return spelled;
}

std::string Spelled(const std::string& bytes) {
  static const auto& spelled = *new std::vector<std::string>(SpelledBytes());
  std::string text;
  for (const char byte : bytes) text += spelled[static_cast<unsigned char>(byte)];
  return text;
}

}  // namespace

ByteLevelBpe::ByteLevelBpe(std::vector<std::string> specials, const std::vector<std::string>& roles,
                           int64_t vocabulary)
    : bytes_(specials), spelled_(std::move(specials)) {
  first_byte_ = std::ssize(bytes_);
  for (int byte = 0; byte < 256; ++byte) {
    bytes_.push_back(std::string(1, static_cast<char>(byte)));
    spelled_.push_back(Spelled(bytes_.back()));
  }
  Merge("\n", "\n");
  for (const std::string& role : roles) {
    for (size_t length = 1; length < role.size(); ++length)
      Merge(role.substr(0, length), role.substr(length, 1));
  }
  first_word_ = std::ssize(bytes_);
  std::vector<std::string> beginnings = {" "};
  for (size_t next = 0; std::ssize(bytes_) < vocabulary; ++next) {
    const std::string beginning = beginnings[next];
    for (const char* letter = kLetters; *letter && std::ssize(bytes_) < vocabulary; ++letter) {
      Merge(beginning, std::string(1, *letter));
      beginnings.push_back(bytes_.back());
    }
  }
}

void ByteLevelBpe::Merge(const std::string& left, const std::string& right) {
  merges_.emplace_back(Spelled(left), Spelled(right));
  bytes_.push_back(left + right);
  spelled_.push_back(Spelled(bytes_.back()));
}

int64_t ByteLevelBpe::IdOf(const std::string& bytes) const {
  const auto found = std::find(bytes_.begin(), bytes_.end(), bytes);
  HARNESS_CHECK(found != bytes_.end()) << bytes << " is no token";
  return found - bytes_.begin();
}

std::string ByteLevelBpe::TextOf(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const int64_t token : tokens) text += bytes_[token];
  return text;
}

std::vector<int64_t> ByteLevelBpe::DrawContent(int64_t length, const CounterStream& stream,
                                               uint64_t& drawn) const {
  const auto byte = [&](char value) { return first_byte_ + static_cast<unsigned char>(value); };
  std::vector<int64_t> tokens;
  if (length > 0) tokens.push_back(byte(kLetters[stream.Below(std::size(kLetters) - 1, drawn++)]));
  while (std::ssize(tokens) < length) {
    const uint64_t kind = stream.Below(kWordsPerOther * std::size(kOthers), drawn++);
    const std::string other = kind < std::size(kOthers) ? kOthers[kind] : "";
    if (!other.empty() && std::ssize(tokens) + std::ssize(other) <= length) {
      for (const char value : other) tokens.push_back(byte(value));
      continue;
    }
    const int64_t words = std::ssize(bytes_) - first_word_;
    tokens.push_back(first_word_ + static_cast<int64_t>(stream.Below(words, drawn++)));
  }
  return tokens;
}

}  // namespace bkm
