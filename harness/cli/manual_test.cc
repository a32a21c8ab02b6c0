// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/version.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/command_line.h"
#include "harness/cli/run_commands.h"
#include "harness/matrix/plan.h"
#include "harness/matrix/testing_plan.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

fs::path Runfile(const std::string& path) {
  return fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE") / path;
}

Manual OwnManual() {
  CommandLine line(AllCommands());
  return ManualOf(line.app());
}

// Runs a program with `input`. Exit code 127: the program is not installed.
ProcessResult Check(std::vector<std::string> argv, const std::string& input) {
  const absl::StatusOr<ProcessResult> result =
      RunCommand({.argv = std::move(argv), .input = input});
  return result.ok()
             ? *result
             : ProcessResult{.err = std::string(result.status().message()), .exit_code = 127};
}

// The program that the launcher builds for a command line: its own shell function, run alone.
std::string ProgramFor(const std::string& command_line) {
  const ProcessResult result =
      Check({"bash", "-c", "eval \"$(sed -n '/^program_for()/,/^}/p' \"$0\")\"; program_for $1",
             Runfile("tools/bkm"), command_line},
            "");
  return result.out + result.err;
}

TEST(ManualTest, TheLauncherBuildsBkmRunForTheCommandsThatItHas) {
  CommandLine line(RunCommands());
  const Manual first = ManualOf(line.app());
  ASSERT_GT(first.commands.size(), 3u);
  for (const CommandManual& command : OwnManual().commands) {
    const bool is_first =
        std::any_of(first.commands.begin(), first.commands.end(),
                    [&](const CommandManual& other) { return other.name == command.name; });
    EXPECT_EQ(ProgramFor(command.name), is_first ? "bkm_run\n" : "bkm\n") << command.name;
  }
  EXPECT_EQ(ProgramFor("run m.json --executor ray"), "bkm\n");
  EXPECT_EQ(ProgramFor("plan m.json --urgent-first"), "bkm\n");
}

TEST(ManualTest, EveryCommandAndOptionIsEverywhere) {
  const Manual manual = OwnManual();
  ASSERT_GT(manual.commands.size(), 15u);
  const std::string bash = BashCompletion(manual);
  const std::string zsh = ZshCompletion(manual);
  const std::string man = ManPage(manual);
  for (const CommandManual& command : manual.commands) {
    EXPECT_THAT(bash, HasSubstr("    " + command.name + ")"));
    EXPECT_THAT(zsh, HasSubstr("    " + command.name + ")"));
    EXPECT_THAT(man, HasSubstr(".SS bkm " + command.name + "\n"));
    for (const OptionManual& option : command.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(man, HasSubstr(absl::StrReplaceAll(name, {{"-", "\\-"}}))) << command.name;
        if (option.is_positional) continue;
        EXPECT_THAT(bash, HasSubstr(name)) << command.name;
        EXPECT_THAT(zsh, HasSubstr("'*" + name + "[")) << command.name;
      }
    }
  }
}

TEST(ManualTest, OptionsOfTheProgramItselfAreEverywhere) {
  const Manual manual = OwnManual();
  std::vector<std::string> names;
  for (const OptionManual& option : manual.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  EXPECT_THAT(names, IsSupersetOf({"--help", "--version"}));
  for (const std::string& name : names) {
    EXPECT_THAT(BashCompletion(manual), HasSubstr(" " + name));
    EXPECT_THAT(ZshCompletion(manual), HasSubstr("    '" + name + ":"));
    EXPECT_THAT(ManPage(manual), HasSubstr(absl::StrReplaceAll(name, {{"-", "\\-"}})));
  }
}

TEST(ManualTest, TheManPageNamesTheVersion) {
  EXPECT_THAT(ManPage(OwnManual()), HasSubstr(absl::StrCat("\"bkm ", kVersion, "\"")));
}

TEST(ManualTest, EveryCommandHasAnExampleAndEveryOptionHelp) {
  for (const CommandManual& command : OwnManual().commands) {
    EXPECT_THAT(command.examples, HasSubstr("Example")) << command.name;
    EXPECT_FALSE(command.summary.empty()) << command.name;
    for (const OptionManual& option : command.options)
      EXPECT_FALSE(option.help.empty()) << command.name << " " << option.names[0];
  }
}

TEST(ManualTest, BashReadsItsScriptAndCompletes) {
  const std::string script = BashCompletion(OwnManual());
  EXPECT_EQ(Check({"bash", "-n"}, script).err, "");
  const auto complete = [&](const std::string& words, int at) {
    return Check({"bash"}, absl::StrCat(script, "\nCOMP_WORDS=(", words, "); COMP_CWORD=", at,
                                        "; _bkm; printf '%s ' \"${COMPREPLY[@]}\"\n"))
        .out;
  };
  EXPECT_EQ(complete("bkm sel", 1), "selftest ");
  EXPECT_EQ(complete("bkm site --det", 2), "--detection ");
  EXPECT_EQ(complete("bkm nonsense --x", 2), " ");
}

TEST(ManualTest, ZshReadsItsScript) {
  const ProcessResult result = Check({"zsh", "-n"}, ZshCompletion(OwnManual()));
  if (result.exit_code == 127) GTEST_SKIP() << "zsh is not here";
  EXPECT_EQ(result.err, "");
}

TEST(ManualTest, TheManPageIsGoodRoff) {
  const ProcessResult result = Check({"groff", "-man", "-Tutf8", "-ww"}, ManPage(OwnManual()));
  if (result.exit_code == 127) GTEST_SKIP() << "groff is not here";
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("bkm bisect"));
}

// Splits a command into words like a shell, as far as our documents need it, up to a comment, pipe,
// redirection or &&.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == ' ') {
      if (open || !word.empty()) words.push_back(word);
      word.clear();
      open = false;
    } else {
      word += c;
    }
  }
  const auto end = std::find_if(words.begin(), words.end(), [](const std::string& each) {
    return each == "#" || each == "|" || each == "&&" || each == ">" || each == ">>" || each == ")";
  });
  words.erase(end, words.end());
  return words;
}

// Lines of code blocks that call bkm, and the examples of --help.
std::vector<std::string> QuotedIn(const std::string& text) {
  std::vector<std::string> commands;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string trimmed(absl::StripLeadingAsciiWhitespace(line));
    const bool is_example = absl::StartsWith(trimmed, "Example: ");
    if (is_example) trimmed = trimmed.substr(9);
    if (absl::StartsWith(trimmed, "tools/")) trimmed = trimmed.substr(6);
    if (absl::StartsWith(trimmed, "bkm ")) commands.push_back(trimmed);
  }
  return commands;
}

// Why bkm would refuse the command line; empty: it would accept it.
std::string Refusal(const std::string& command) {
  std::vector<std::string> words = WordsOf(command);
  words.erase(words.begin());
  const std::vector<std::string> of_launcher = {"test", "lint", "setup"};
  if (words.empty() ||
      std::find(of_launcher.begin(), of_launcher.end(), words[0]) != of_launcher.end())
    return "";
  for (const char* flag : {"--help", "--version"}) {
    if (std::find(words.begin(), words.end(), flag) != words.end()) return "";
  }
  CommandLine line(AllCommands());
  const Manual manual = ManualOf(line.app());
  for (const CommandManual& known : manual.commands) {
    if (known.name != words[0]) continue;
    size_t most = 0, least = 0, given = 0;
    for (const OptionManual& option : known.options) {
      if (option.is_positional) most += option.is_list ? 100 : 1;
      if (option.is_positional && option.is_required) ++least;
    }
    for (size_t i = 1; i < words.size(); ++i) {
      if (!absl::StartsWith(words[i], "-")) {
        ++given;
        continue;
      }
      const std::string name = words[i].substr(0, words[i].find('='));
      const auto option =
          std::find_if(known.options.begin(), known.options.end(), [&](const OptionManual& each) {
            return std::find(each.names.begin(), each.names.end(), name) != each.names.end();
          });
      if (option == known.options.end()) return absl::StrCat("no option ", name);
      if (option->takes_value && name == words[i]) ++i;
    }
    if (given < least) return "too few arguments";
    if (given > most) return "too many arguments";
    return "";
  }
  return absl::StrCat("no command ", words[0]);
}

TEST(DocumentsTest, EveryCommandThatIsQuotedExists) {
  std::vector<fs::path> files = {Runfile("README.md")};
  for (const auto& entry : fs::directory_iterator(Runfile("docs"))) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  ASSERT_GT(files.size(), 7u);
  int commands = 0;
  for (const fs::path& file : files) {
    for (const std::string& command : QuotedIn(*ReadFile(file))) {
      ++commands;
      EXPECT_EQ(Refusal(command), "") << file.filename() << ": " << command;
    }
  }
  EXPECT_GT(commands, 25);
}

// Those of the README that name one cell of the quickstart name exactly one.
TEST(DocumentsTest, EveryQuotedCellOfTheQuickstartIsOneCell) {
  const Matrix matrix = *ReadMatrix(Runfile("matrices/quickstart.json"));
  const std::vector<PlannedCell> plan = *ExpandMatrix(matrix, {}, Unresolved());
  int cells = 0;
  for (const std::string& command : QuotedIn(*ReadFile(Runfile("README.md")))) {
    const std::vector<std::string> words = WordsOf(command);
    if (words.size() < 4 || words[2] != "runs/quickstart" || !absl::StrContains(words[3], '='))
      continue;
    ++cells;
    const absl::StatusOr<CellFilter> filter = CellFilter::Parse(words[3]);
    ASSERT_TRUE(filter.ok()) << command << ": " << filter.status();
    EXPECT_EQ(std::count_if(plan.begin(), plan.end(),
                            [&](const PlannedCell& planned) {
                              return planned.included && filter->Matches(planned.cell);
                            }),
              1)
        << command;
  }
  EXPECT_GE(cells, 2);
}

TEST(DocumentsTest, EveryExampleOfHelpIsACommand) {
  for (const CommandManual& command : OwnManual().commands) {
    for (const std::string& example : QuotedIn(command.examples))
      EXPECT_EQ(Refusal(example), "") << command.name << ": " << example;
  }
}

TEST(DocumentsTest, RefusalSeesWhatIsWrong) {
  EXPECT_EQ(Refusal("bkm nosuch x"), "no command nosuch");
  EXPECT_EQ(Refusal("bkm judge runs/x --nosuch"), "no option --nosuch");
  EXPECT_EQ(Refusal("bkm judge"), "too few arguments");
  EXPECT_EQ(Refusal("bkm judge a b"), "too many arguments");
}

// scenario_test runs the worked example of docs/adding-an-engine.md; the texts must be identical.
TEST(DocumentsTest, TheWorkedExampleIsTheCodeThatRuns) {
  const std::string text = *ReadFile(Runfile("docs/adding-an-engine.md"));
  std::vector<std::string> blocks;
  for (size_t at = text.find("```python\n"); at != std::string::npos;
       at = text.find("```python\n", at + 1)) {
    const size_t begin = at + 10;
    blocks.push_back(text.substr(begin, text.find("```", begin) - begin));
  }
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_THAT(*ReadFile(Runfile("harness/cell/python/bkm_cell/adapters/fixture.py")),
              HasSubstr(blocks[0]));
  EXPECT_THAT(*ReadFile(Runfile("fixtures/packages/passes/engine/fake_engine/__init__.py")),
              HasSubstr(blocks[1]));
}

}  // namespace
}  // namespace bkm
