// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/markdown_lines.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/shown_text.h"

namespace bkm {
namespace {

constexpr size_t kColumns = 100;  // of a line, but for words that are longer

// Whether a line that starts with this word could be another block of Markdown than a paragraph: a
// list, a heading, a quotation, a table, a fence or a rule.
bool StartsABlock(absl::string_view word) {
  if (word.empty()) return false;
  if (word[0] == '>' || word[0] == '|' || absl::StartsWith(word, "```")) return true;
  if (word.find_first_not_of("-+*#=~") == absl::string_view::npos) return true;
  const absl::string_view number = word.substr(0, word.size() - 1);
  return !number.empty() && (word.back() == '.' || word.back() == ')') &&
         number.find_first_not_of("0123456789") == absl::string_view::npos;
}

// A line of a fenced block of code, which it does not end. A long command goes on in further lines.
std::string CodeLine(const std::string& line) {
  const std::string shown = absl::StrReplaceAll(ShownText(line), {{"\n", " "}, {"```", "'''"}});
  std::string out, current;
  for (const absl::string_view word : absl::StrSplit(shown, ' ')) {
    if (!current.empty() && current.size() + word.size() + 3 > kColumns) {
      absl::StrAppend(&out, current, " \\\n");
      current = "    ";
    } else if (!current.empty()) {
      current += ' ';
    }
    absl::StrAppend(&current, word);
  }
  return absl::StrCat(out, current, "\n");
}

}  // namespace

std::string WrappedMarkdown(absl::string_view lead, absl::string_view text) {
  std::string out, line(lead);
  bool is_empty = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!is_empty && line.size() + 1 + word.size() > kColumns && !StartsABlock(word)) {
      absl::StrAppend(&out, line, "\n");
      line.assign(lead.size(), ' ');
      is_empty = true;
    }
    absl::StrAppend(&line, is_empty ? "" : " ", word);
    is_empty = false;
  }
  return absl::StrCat(out, line, "\n");
}

std::string ShellBlock(const std::vector<std::string>& lines) {
  std::string out = "```sh\n";
  for (const std::string& line : lines) out += CodeLine(line);
  return out + "```\n\n";
}

}  // namespace bkm
