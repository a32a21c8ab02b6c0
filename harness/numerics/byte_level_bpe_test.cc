// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/byte_level_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace bkm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

ByteLevelBpe Vocabulary() { return ByteLevelBpe({"<a>", "<b>"}, {"system", "user"}, 2048); }

TEST(ByteLevelBpeTest, HasAsManyDistinctTokensAsAsked) {
  const ByteLevelBpe bpe = Vocabulary();
  EXPECT_THAT(bpe.spelled(), SizeIs(2048));
  EXPECT_THAT(std::set<std::string>(bpe.spelled().begin(), bpe.spelled().end()), SizeIs(2048));
}

// As in a published tokenizer.json.
TEST(ByteLevelBpeTest, BytesAreSpelledAsInPublishedFiles) {
  const ByteLevelBpe bpe = Vocabulary();
  const auto spelled = [&](const std::string& bytes) { return bpe.spelled()[bpe.IdOf(bytes)]; };
  EXPECT_EQ(spelled(" "), "\u0120");
  EXPECT_EQ(spelled("\n"), "\u010a");
  EXPECT_EQ(spelled("\n\n"), "\u010a\u010a");
  EXPECT_EQ(spelled("A"), "A");
  EXPECT_EQ(spelled("\xc3"), "\u00c3");
  EXPECT_EQ(spelled("\xad"), "\u0143");
  EXPECT_EQ(spelled(" bcd"), "\u0120bcd");
  EXPECT_THAT(bpe.merges(), Contains(Pair("\u0120bc", "d")));
  EXPECT_THAT(bpe.merges(), Contains(Pair("use", "r")));
}

// The algorithm of BPE as its paper has it (Sennrich et al. 2016): of all pairs of neighbours the
// best merge first. A piece is a space and what follows it up to the next one.
std::vector<int64_t> Tokenized(const ByteLevelBpe& bpe, const std::string& text) {
  std::map<std::pair<std::string, std::string>, size_t> rank;
  for (const auto& merge : bpe.merges()) rank.emplace(merge, rank.size());
  std::map<std::string, int64_t> ids;
  for (const std::string& token : bpe.spelled()) ids.emplace(token, ids.size());
  std::vector<int64_t> tokens;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin + 1), text.size());
    std::vector<std::string> parts;
    for (size_t i = begin; i < end; ++i)
      parts.push_back(bpe.spelled()[bpe.IdOf(text.substr(i, 1))]);
    while (true) {
      size_t best = rank.size(), place = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = rank.find({parts[i], parts[i + 1]});
        if (found == rank.end() || found->second >= best) continue;
        best = found->second;
        place = i;
      }
      if (best == rank.size()) break;
      parts[place] += parts[place + 1];
      parts.erase(parts.begin() + place + 1);
    }
    for (const std::string& part : parts) tokens.push_back(ids.at(part));
    begin = end;
  }
  return tokens;
}

TEST(ByteLevelBpeTest, TextOfDrawnContentHasTheDrawnTokenization) {
  const ByteLevelBpe bpe = Vocabulary();
  for (int64_t length : {0, 1, 2, 3, 50, 2000}) {
    uint64_t drawn = 0;
    const std::vector<int64_t> content = bpe.DrawContent(length, CounterStream(1, "x"), drawn);
    EXPECT_THAT(content, SizeIs(length));
    EXPECT_EQ(Tokenized(bpe, bpe.TextOf(content)), content);
  }
  EXPECT_THAT(Tokenized(bpe, "user"), ElementsAre(bpe.IdOf("user")));
  EXPECT_THAT(Tokenized(bpe, "system"), ElementsAre(bpe.IdOf("system")));
}

}  // namespace
}  // namespace bkm
