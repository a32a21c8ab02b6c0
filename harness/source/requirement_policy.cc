// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/requirement_policy.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

// Real packages declare at most a few hundred requirements of at most a few hundred characters.
constexpr size_t kMostRequirements = 2000;
constexpr size_t kLongestRequirement = 2000;
constexpr int kDeepestMarker = 32;

constexpr absl::string_view kMarkerVariables[] = {"python_version",
                                                  "python_full_version",
                                                  "os_name",
                                                  "os.name",
                                                  "sys_platform",
                                                  "sys.platform",
                                                  "platform_release",
                                                  "platform_system",
                                                  "platform_version",
                                                  "platform_machine",
                                                  "platform.machine",
                                                  "platform_python_implementation",
                                                  "python_implementation",
                                                  "implementation_name",
                                                  "implementation_version",
                                                  "platform.python_implementation",
                                                  "platform.version",
                                                  "extra"};

// Longer ones first, so that a prefix does not hide them.
constexpr absl::string_view kOperators[] = {"===", "==", "!=", "<=", ">=", "~=", "<", ">"};

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// Text for a message: bounded, and without what could act on a terminal.
std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 120;
  std::string quoted = "'";
  for (const char c : text.substr(0, kShown))
    quoted += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  return absl::StrCat(quoted, text.size() > kShown ? "...'" : "'");
}

// A recursive-descent reader of one requirement. Each Read* consumes what it accepts, and false
// means that the text does not fit.
class Reader {
 public:
  explicit Reader(absl::string_view text) : rest_(text) {}

  bool ReadRequirement() {
    SkipSpace();
    if (!ReadName()) return false;
    SkipSpace();
    if (Consume("[") && !ReadExtras()) return false;
    SkipSpace();
    if (Consume("(")) {
      if (!ReadVersions() || (SkipSpace(), !Consume(")"))) return false;
    } else if (!rest_.empty() && rest_[0] != ';' && !ReadVersions()) {
      return false;
    }
    SkipSpace();
    if (Consume(";") && !ReadMarker(0)) return false;
    SkipSpace();
    return rest_.empty();
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }
  bool Consume(absl::string_view text) { return absl::ConsumePrefix(&rest_, text); }
  // The longest prefix of characters that `accepts` accepts.
  template <typename Accepts>
  absl::string_view Take(Accepts accepts) {
    size_t size = 0;
    while (size < rest_.size() && accepts(rest_[size])) ++size;
    const absl::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  bool ReadName() {
    return IsPackageName(Take([](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    }));
  }

  bool ReadExtras() {
    SkipSpace();
    if (Consume("]")) return true;
    do {
      SkipSpace();
      if (!ReadName()) return false;
      SkipSpace();
    } while (Consume(","));
    return Consume("]");
  }

  bool ReadVersions() {
    do {
      SkipSpace();
      if (!ReadVersion()) return false;
      SkipSpace();
    } while (Consume(","));
    return true;
  }

  bool ReadVersion() {
    const auto found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                    [&](absl::string_view text) { return Consume(text); });
    if (found == std::end(kOperators)) return false;
    SkipSpace();
    absl::string_view version = Take([](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(".!+-_*", c);
    });
    if (*found == "==" || *found == "!=") absl::ConsumeSuffix(&version, ".*");
    return IsVersion(version);
  }

  // PEP 440: [N!]N(.N)*[{a|b|rc}N][.postN][.devN][+local], in every accepted spelling.
  static bool IsVersion(absl::string_view text) {
    constexpr size_t kLongestNumber = 18;  // more digits would not fit the resolver's numbers
    const std::string lower = absl::AsciiStrToLower(text);
    absl::string_view rest = lower;
    const auto number = [&] {
      size_t digits = 0;
      while (digits < rest.size() && absl::ascii_isdigit(static_cast<unsigned char>(rest[digits])))
        ++digits;
      rest.remove_prefix(digits);
      return digits > 0 && digits <= kLongestNumber;
    };
    const auto separator = [&] {
      if (!rest.empty() && absl::StrContains(".-_", rest[0])) rest.remove_prefix(1);
    };
    // One of `words` with an optional separator before it and an optional number after it.
    const auto suffix = [&](std::initializer_list<absl::string_view> words) {
      const absl::string_view before = rest;
      separator();
      if (std::none_of(words.begin(), words.end(),
                       [&](absl::string_view word) { return absl::ConsumePrefix(&rest, word); })) {
        rest = before;
        return true;
      }
      const absl::string_view after = rest;
      separator();
      if (rest.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(rest[0]))) {
        rest = after;
        return true;
      }
      return number();
    };
    absl::ConsumePrefix(&rest, "v");
    if (!number()) return false;
    if (absl::ConsumePrefix(&rest, "!") && !number()) return false;
    while (rest.size() > 1 && rest[0] == '.' &&
           absl::ascii_isdigit(static_cast<unsigned char>(rest[1]))) {
      rest.remove_prefix(1);
      if (!number()) return false;
    }
    if (!suffix({"alpha", "beta", "preview", "pre", "rc", "a", "b", "c"})) return false;
    // 1.0-1 is another spelling of 1.0.post1.
    if (rest.size() > 1 && rest[0] == '-' &&
        absl::ascii_isdigit(static_cast<unsigned char>(rest[1]))) {
      rest.remove_prefix(1);
      if (!number()) return false;
    } else if (!suffix({"post", "rev", "r"})) {
      return false;
    }
    if (!suffix({"dev"})) return false;
    if (!absl::ConsumePrefix(&rest, "+")) return rest.empty();
    bool after_mark = true;
    for (const char c : rest) {
      const bool mark = absl::StrContains(".-_", c);
      if (mark ? after_mark : !absl::ascii_isalnum(static_cast<unsigned char>(c))) return false;
      after_mark = mark;
    }
    return !after_mark;
  }

  bool ReadMarker(int depth) {
    do {
      do {
        if (!ReadMarkerTerm(depth)) return false;
        SkipSpace();
      } while (ConsumeWord("and"));
    } while (ConsumeWord("or"));
    return true;
  }

  bool ReadMarkerTerm(int depth) {
    SkipSpace();
    if (Consume("(")) {
      if (depth >= kDeepestMarker || !ReadMarker(depth + 1)) return false;
      SkipSpace();
      return Consume(")");
    }
    return ReadMarkerValue() && ReadMarkerOperator() && ReadMarkerValue();
  }

  bool ReadMarkerOperator() {
    SkipSpace();
    for (const absl::string_view text : kOperators) {
      if (Consume(text)) return true;
    }
    if (ConsumeWord("in")) return true;
    if (!ConsumeWord("not")) return false;
    SkipSpace();
    return ConsumeWord("in");
  }

  bool ReadMarkerValue() {
    SkipSpace();
    if (rest_.empty()) return false;
    const char quote = rest_[0];
    if (quote == '\'' || quote == '"') {
      rest_.remove_prefix(1);
      // A resolver may take " #" for the start of a comment.
      const absl::string_view text = Take([&](char c) { return c != quote && c != '#'; });
      return text.size() <= kLongestRequirement && Consume(absl::string_view(&quote, 1));
    }
    const absl::string_view word = Take([](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    });
    return std::find(std::begin(kMarkerVariables), std::end(kMarkerVariables), word) !=
           std::end(kMarkerVariables);
  }

  // Consumes `word` unless it is only the start of a longer word.
  bool ConsumeWord(absl::string_view word) {
    if (!absl::StartsWith(rest_, word)) return false;
    const absl::string_view after = rest_.substr(word.size());
    if (!after.empty() && (absl::ascii_isalnum(static_cast<unsigned char>(after[0])) ||
                           absl::StrContains("_.-", after[0])))
      return false;
    rest_ = after;
    return true;
  }

  absl::string_view rest_;
};

// Why the policy forbids a text, whether or not it is a requirement; empty if it does not.
std::string WhyForbidden(absl::string_view text) {
  if (text.size() > kLongestRequirement)
    return absl::StrCat("has more than ", kLongestRequirement, " characters");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r') return "has more than one line";
    if (c == '\0') return "contains a NUL byte";
    if (byte >= 0x80) return "contains characters that are not ASCII";
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) return "contains a control character";
    if (c == '\\') return "contains a backslash";
    if (c == '$' || c == '`') return "contains a variable or a command";
  }
  const absl::string_view own = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(own, "-") || absl::StrContains(own, " --") || absl::StrContains(own, "\t--"))
    return "contains an option";
  if (absl::StrContains(own, "://") || absl::StartsWithIgnoreCase(own, "file:"))
    return "contains a URL";
  // What stands before the marker: a name and versions contain neither of these.
  const absl::string_view head = own.substr(0, own.find(';'));
  if (absl::StrContains(head, '@')) return "refers to a file or URL by '@'";
  if (absl::StrContains(head, '/') || absl::StartsWith(head, ".") || absl::StartsWith(head, "~"))
    return "contains a path";
  for (const absl::string_view suffix : {".whl", ".tar.gz", ".zip", ".txt", ".toml"}) {
    if (absl::EndsWithIgnoreCase(absl::StripTrailingAsciiWhitespace(head), suffix))
      return "contains a file's name";
  }
  return "";
}

}  // namespace

bool IsPackageName(absl::string_view name) {
  const auto is_alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  constexpr size_t kLongestName = 200;  // shorter than a file's name may be
  return !name.empty() && name.size() <= kLongestName && is_alnum(name.front()) &&
         is_alnum(name.back()) && std::all_of(name.begin(), name.end(), [&](char c) {
           return is_alnum(c) || c == '-' || c == '_' || c == '.';
         });
}

absl::Status CheckRequirement(absl::string_view requirement) {
  if (const std::string why = WhyForbidden(requirement); !why.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the requirement ", Quoted(requirement), " ", why,
        ", but a subject may require only names, extras, versions and markers (PEP 508)"));
  }
  if (!Reader(requirement).ReadRequirement()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(requirement),
                     " is not a requirement: a name, extras, versions and markers (PEP "
                     "508), such as numpy[x]>=1,<3; python_version>'3.10'"));
  }
  return absl::OkStatus();
}

absl::Status CheckRequirements(const std::vector<std::string>& requirements) {
  if (requirements.size() > kMostRequirements) {
    return absl::PermissionDeniedError(absl::StrCat(
        "more than ", kMostRequirements, " requirements are declared (", requirements.size(), ")"));
  }
  for (const std::string& requirement : requirements) {
    if (absl::Status status = CheckRequirement(requirement); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace bkm
