// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/chat_form.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/numerics/byte_level_bpe.h"
#include "harness/numerics/hf_tokenizer.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

const std::vector<std::string>& Roles() {
  static const auto& roles = *new std::vector<std::string>{"system", "user", "assistant"};
  return roles;
}

// A token a word. Each turn is "<bos> ROLE WORDS <eos>", and a prompt for an answer is
// "<bos> assistant". The roles' words are the first ordinary tokens.
class Words : public ChatForm {
 public:
  explicit Words(int64_t vocabulary) : vocabulary_(vocabulary) {}

  std::vector<int64_t> BeforeFirst() const override { return {}; }
  std::vector<int64_t> BeforeContent(const std::string& role) const override {
    return {kBosToken, kFirstOrdinaryToken +
                           (std::find(Roles().begin(), Roles().end(), role) - Roles().begin())};
  }
  std::vector<int64_t> AfterContent() const override { return {kEosToken}; }
  std::vector<int64_t> DrawContent(int64_t length, const CounterStream& stream,
                                   uint64_t& drawn) const override {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < length; ++i)
      tokens.push_back(kFirstOrdinaryToken +
                       stream.Below(vocabulary_ - kFirstOrdinaryToken, drawn++));
    return tokens;
  }
  std::string TextOf(const std::vector<int64_t>& content) const override {
    return absl::StrJoin(
        content, " ", [](std::string* out, int64_t token) { absl::StrAppend(out, Word(token)); });
  }
  std::string Template(bool marks_answers) const override {
    constexpr char kEnd[] = "{% endfor %}{% if add_generation_prompt %}<bos> assistant {% endif %}";
    constexpr char kBegin[] = "{% for message in messages %}<bos> {{ message['role'] }} ";
    if (!marks_answers) return absl::StrCat(kBegin, "{{ message['content'] }} <eos> ", kEnd);
    return absl::StrCat(kBegin,
                        "{% if message['role'] == 'assistant' %}{% generation %}"
                        // A mark begins with a token: what stands before one may be none.
                        "{{ message['content'] }}{% if message['content'] %} {% endif %}<eos>"
                        "{% endgeneration %} {% else %}"
                        "{{ message['content'] }} <eos> {% endif %}",
                        kEnd);
  }
  OrderedJson TokenizerJson() const override {
    std::vector<std::string> words;
    for (int64_t id = kFirstOrdinaryToken; id < vocabulary_; ++id) words.push_back(Word(id));
    return HfTokenizer(words);
  }
  OrderedJson TokenizerConfig() const override {
    OrderedJson config = HfTokenizerConfig();
    // As of Qwen3: the template's begin of a turn is none of a document, which a tokenizer would
    // add.
    config["bos_token"] = nullptr;
    return config;
  }

 private:
  static std::string Word(int64_t token) {
    const auto role = static_cast<size_t>(token - kFirstOrdinaryToken);
    return role < Roles().size() ? Roles()[role] : absl::StrCat("t", token);
  }

  int64_t vocabulary_;
};

// How the pieces of text are found in which merges are done, up to the run of digits: the pattern
// of tiktoken's cl100k_base, which Qwen and Llama 3 publish in their tokenizer.json.
std::string PatternOfPieces(const std::string& digits) {
  return absl::StrCat(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)", digits,
                      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

class ByteLevel : public ChatForm {
 public:
  ByteLevel(std::vector<std::string> specials, int64_t vocabulary)
      : specials_(specials), bpe_(std::move(specials), Roles(), vocabulary) {}

  std::vector<int64_t> DrawContent(int64_t length, const CounterStream& stream,
                                   uint64_t& drawn) const override {
    return bpe_.DrawContent(length, stream, drawn);
  }
  std::string TextOf(const std::vector<int64_t>& content) const override {
    return bpe_.TextOf(content);
  }

 protected:
  OrderedJson TokenizerOf(const std::string& digits, OrderedJson normalizer,
                          OrderedJson post_processor) const {
    OrderedJson vocabulary = OrderedJson::object(), merges = OrderedJson::array();
    for (const std::string& token : bpe_.spelled()) {
      const auto id = static_cast<int64_t>(vocabulary.size());
      vocabulary[token] = id;
    }
    for (const auto& [left, right] : bpe_.merges())
      merges.push_back(absl::StrCat(left, " ", right));
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", AddedTokens(specials_)},
            {"normalizer", std::move(normalizer)},
            {"pre_tokenizer",
             {{"type", "Sequence"},
              {"pretokenizers",
               {{{"type", "Split"},
                 {"pattern", {{"Regex", PatternOfPieces(digits)}}},
                 {"behavior", "Isolated"},
                 {"invert", false}},
                {{"type", "ByteLevel"},
                 {"add_prefix_space", false},
                 {"trim_offsets", false},
                 {"use_regex", false}}}}}},
            {"post_processor", std::move(post_processor)},
            {"decoder",
             {{"type", "ByteLevel"},
              {"add_prefix_space", true},
              {"trim_offsets", true},
              {"use_regex", true}}},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"vocab", vocabulary},
              {"merges", merges}}}};
  }
  OrderedJson ConfigOf(OrderedJson bos) const {
    OrderedJson config = HfTokenizerConfig();
    config.erase("unk_token");
    config["pad_token"] = specials_[0];
    config["bos_token"] = std::move(bos);
    config["eos_token"] = specials_[kEosToken];
    return config;
  }
  const ByteLevelBpe& bpe() const { return bpe_; }

 private:
  std::vector<std::string> specials_;
  ByteLevelBpe bpe_;
};

// A template's part for each turn: what stands before the content of a role, the content, and what
// stands after it; then the prompt for an answer.
std::string TurnsOf(const std::string& before, const std::string& content, const std::string& end,
                    const std::string& after, bool marks_answers) {
  const std::string begin = absl::StrCat("{%- for message in messages %}{{- ", before, " }}");
  const std::string turn =
      marks_answers ? absl::StrCat("{%- if message['role'] == 'assistant' %}{% generation %}{{- ",
                                   content, " + ", end, " }}{% endgeneration %}{%- else %}{{- ",
                                   content, " + ", end, " }}{%- endif %}")
                    : absl::StrCat("{{- ", content, " + ", end, " }}");
  return absl::StrCat(begin, turn, after.empty() ? "" : absl::StrCat("{{- ", after, " }}"),
                      "{%- endfor %}");
}

std::string PromptOf(const std::string& text) {
  return absl::StrCat("{%- if add_generation_prompt %}{{- ", text, " }}{%- endif %}");
}

// "<|im_start|>ROLE\nCONTENT<|im_end|>\n"
class ChatMl : public ByteLevel {
 public:
  explicit ChatMl(int64_t vocabulary)
      : ByteLevel({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, vocabulary) {}

  std::vector<int64_t> BeforeFirst() const override { return {}; }
  std::vector<int64_t> BeforeContent(const std::string& role) const override {
    return {bpe().IdOf("<|im_start|>"), bpe().IdOf(role), bpe().IdOf("\n")};
  }
  std::vector<int64_t> AfterContent() const override {
    return {bpe().IdOf("<|im_end|>"), bpe().IdOf("\n")};
  }
  std::string Template(bool marks_answers) const override {
    return TurnsOf(R"('<|im_start|>' + message['role'] + '\n')", "message['content']",
                   "'<|im_end|>'", R"('\n')", marks_answers) +
           PromptOf(R"('<|im_start|>assistant\n')");
  }
  OrderedJson TokenizerJson() const override {
    return TokenizerOf(R"(\p{N})", {{"type", "NFC"}},
                       {{"type", "ByteLevel"},
                        {"add_prefix_space", false},
                        {"trim_offsets", false},
                        {"use_regex", false}});
  }
  OrderedJson TokenizerConfig() const override { return ConfigOf(nullptr); }
};

// "<|begin_of_text|>", then "<|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>".
class Llama3 : public ByteLevel {
 public:
  explicit Llama3(int64_t vocabulary)
      : ByteLevel({"<|finetune_right_pad_id|>", kBegin, "<|eot_id|>", "<|start_header_id|>",
                   "<|end_header_id|>"},
                  vocabulary) {}

  std::vector<int64_t> BeforeFirst() const override { return {bpe().IdOf(kBegin)}; }
  std::vector<int64_t> BeforeContent(const std::string& role) const override {
    return {bpe().IdOf("<|start_header_id|>"), bpe().IdOf(role), bpe().IdOf("<|end_header_id|>"),
            bpe().IdOf("\n\n")};
  }
  std::vector<int64_t> AfterContent() const override { return {bpe().IdOf("<|eot_id|>")}; }
  std::string Template(bool marks_answers) const override {
    return absl::StrCat(
        "{{- bos_token }}",
        TurnsOf(R"('<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n')",
                "message['content'] | trim", "'<|eot_id|>'", "", marks_answers),
        PromptOf(R"('<|start_header_id|>assistant<|end_header_id|>\n\n')"));
  }
  OrderedJson TokenizerJson() const override {
    const OrderedJson begin = {{"SpecialToken", {{"id", kBegin}, {"type_id", 0}}}};
    const auto sequence = [](const char* name) -> OrderedJson {
      return {{"Sequence", {{"id", name}, {"type_id", 0}}}};
    };
    const OrderedJson ids = {{kBegin,
                              {{"id", kBegin},
                               {"ids", OrderedJson::array({kBosToken})},
                               {"tokens", OrderedJson::array({kBegin})}}}};
    return TokenizerOf(R"(\p{N}{1,3})", nullptr,
                       {{"type", "TemplateProcessing"},
                        {"single", OrderedJson::array({begin, sequence("A")})},
                        {"pair", OrderedJson::array({begin, sequence("A"), sequence("B")})},
                        {"special_tokens", ids}});
  }
  OrderedJson TokenizerConfig() const override {
    OrderedJson config = ConfigOf(kBegin);
    config.erase("add_bos_token");
    config.erase("add_eos_token");
    return config;
  }

 private:
  static constexpr char kBegin[] = "<|begin_of_text|>";
};

}  // namespace

std::unique_ptr<ChatForm> ChatFormOf(const std::string& chat_template, int64_t vocabulary) {
  if (chat_template == "chatml") return std::make_unique<ChatMl>(vocabulary);
  if (chat_template == "llama3") return std::make_unique<Llama3>(vocabulary);
  return std::make_unique<Words>(vocabulary);
}

}  // namespace bkm
