// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/exception_text.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace bkm {
namespace {

constexpr size_t kMaxMessage = 240;

bool IsPathCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '+' ||
         c == '@' || c == '=';
}

// Splits the text into absolute paths and the text between them, and calls `visit` with each part.
template <typename F>
void SplitPaths(absl::string_view text, F visit) {
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const bool starts = text[at] == '/' && (at == 0 || !IsPathCharacter(text[at - 1]));
    if (!starts) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && IsPathCharacter(text[end])) ++end;
    visit(text.substr(begin, at - begin), /*is_path=*/false);
    visit(text.substr(at, end - at), /*is_path=*/true);
    begin = at = end;
  }
  visit(text.substr(begin), /*is_path=*/false);
}

std::string ShortPath(absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.size() <= 2) return std::string(path);
  return absl::StrCat(".../", parts[parts.size() - 2], "/", parts.back());
}

std::string Clipped(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  size_t end = kMaxMessage;  // never in the middle of a UTF-8 character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

bool IsImportError(const ObservedException& exception) {
  return exception.type == "ImportError" || exception.type == "ModuleNotFoundError";
}

}  // namespace

std::string FirstLine(absl::string_view message) {
  absl::string_view line;
  for (absl::string_view candidate : absl::StrSplit(message, '\n')) {
    line = absl::StripAsciiWhitespace(candidate);
    if (!line.empty()) break;
  }
  std::string text;
  SplitPaths(line, [&](absl::string_view part, bool is_path) {
    absl::StrAppend(&text, is_path ? ShortPath(part) : std::string(part));
  });
  return Clipped(std::move(text));
}

std::string NormalizedMessage(absl::string_view message) {
  std::string text;
  SplitPaths(message, [&](absl::string_view part, bool is_path) {
    if (is_path) return;
    for (size_t i = 0; i < part.size();) {
      if (!absl::ascii_isdigit(part[i])) {
        text.push_back(absl::ascii_tolower(part[i++]));
        continue;
      }
      // A number or an address such as 0x7f3a.
      while (i < part.size() && (absl::ascii_isxdigit(part[i]) || part[i] == 'x')) ++i;
      text.push_back('#');
    }
  });
  return text;
}

std::string Squeezed(absl::string_view text) {
  std::string squeezed;
  for (char c : text) {
    if (absl::ascii_isalnum(c)) squeezed.push_back(absl::ascii_tolower(c));
  }
  return squeezed;
}

const ObservedFrame* DeepestFrame(const ObservedException& exception) {
  for (auto frame = exception.frames.rbegin(); frame != exception.frames.rend(); ++frame) {
    if (frame->owner != FrameOwner::kPython) return &*frame;
  }
  return nullptr;
}

std::string DescribeException(const ObservedException& exception) {
  std::string text = Clipped(exception.type);
  const std::string line = FirstLine(exception.message);
  if (!line.empty()) absl::StrAppend(&text, ": ", line);
  if (const ObservedFrame* frame = DeepestFrame(exception)) {
    absl::StrAppend(&text, " (", Clipped(frame->file), ":", frame->line, ")");
    // A bare assert has no message: show its source line.
    if (line.empty()) absl::StrAppend(&text, ": ", FirstLine(frame->text));
  }
  return text;
}

std::string WithoutPaths(absl::string_view message) {
  std::string text;
  SplitPaths(message, [&](absl::string_view part, bool is_path) {
    if (!is_path) text.append(part.data(), part.size());
  });
  return text;
}

const ObservedException* DecidingException(const Observation& observation) {
  const std::vector<ObservedException>& chain = observation.exceptions;
  if (chain.empty()) return nullptr;
  size_t deciding = 0;
  while (deciding + 1 < chain.size() && IsImportError(chain[deciding]) &&
         IsImportError(chain[deciding + 1]))
    ++deciding;
  return &chain[deciding];
}

}  // namespace bkm
