// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/manual.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/version.h"

namespace bkm {
namespace {

// Commands of tools/bkm that this program does not implement.
constexpr struct {
  const char* name;
  const char* summary;
} kLauncherCommands[] = {{"test", "Run the tests (tools/bkm only; --all adds the slow ones)"},
                         {"lint", "Check formatting and static rules (tools/bkm only)"},
                         {"setup", "Set up and build (tools/bkm only)"}};

OptionManual OptionOf(const CLI::Option& option) {
  OptionManual manual;
  manual.is_positional = !option.nonpositional();
  if (manual.is_positional) {
    manual.names = {option.get_name(/*positional=*/true)};
  } else {
    for (const std::string& name : option.get_lnames()) manual.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) manual.names.push_back("-" + name);
  }
  manual.is_required = option.get_required();
  manual.takes_value = option.get_items_expected_max() > 0;
  manual.is_list = option.get_items_expected_max() > 1;
  manual.help = option.get_description();
  return manual;
}

// Escapes text for one single-quoted line of zsh's _arguments.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\n", " "}});
}

// Escapes backslashes and lines that roff would take for requests.
std::string Roff(absl::string_view text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, ".") || absl::StartsWith(line, "'")) out += "\\&";
    absl::StrAppend(&out, absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}}), "\n");
  }
  return out;
}

std::string RoffNames(const OptionManual& option) {
  std::string names = absl::StrJoin(option.names, ", ");
  if (!option.is_positional && option.takes_value)
    absl::StrAppend(&names, option.is_list ? " VALUE ..." : " VALUE");
  return absl::StrReplaceAll(names, {{"\\", "\\e"}, {"-", "\\-"}});
}

std::string RoffOption(const OptionManual& option) {
  return absl::StrCat(".TP\n", option.is_positional ? ".I " : ".B ", RoffNames(option), "\n",
                      Roff(absl::StrCat(option.help, option.is_required ? " (required)" : "")));
}

}  // namespace

Manual ManualOf(const CLI::App& app) {
  Manual manual{.summary = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) manual.options.push_back(OptionOf(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandManual& entry = manual.commands.emplace_back();
    entry.name = command->get_name();
    entry.summary = command->get_description();
    entry.examples = command->get_footer();
    for (const CLI::Option* option : command->get_options()) {
      // Options without a group are for tests; --help hides them too.
      if (!option->get_group().empty()) entry.options.push_back(OptionOf(*option));
    }
  }
  return manual;
}

std::string BashCompletion(const Manual& manual) {
  std::string names, cases;
  for (const CommandManual& command : manual.commands) {
    absl::StrAppend(&names, names.empty() ? "" : " ", command.name);
    std::vector<std::string> options, with_value;
    for (const OptionManual& option : command.options) {
      if (option.is_positional) continue;
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (option.takes_value)
        with_value.insert(with_value.end(), option.names.begin(), option.names.end());
    }
    absl::StrAppend(&cases, "    ", command.name, ")\n      options='", absl::StrJoin(options, " "),
                    "'\n      with_value='", absl::StrJoin(with_value, " "), "' ;;\n");
  }
  for (const auto& own : kLauncherCommands) absl::StrAppend(&names, " ", own.name);
  for (const OptionManual& option : manual.options)
    absl::StrAppend(&names, " ", absl::StrJoin(option.names, " "));
  return absl::StrCat(
      "# Completion of bkm for bash: source <(bkm completion bash)\n"
      "_bkm() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options='' "
      "with_value=''\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '",
      names,
      "' -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n",
      cases,
      "    *) return ;;\n"
      "  esac\n"
      "  if [[ $word == -* && \" $with_value \" != *\" $before \"* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
      "  else\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}\n"
      "complete -F _bkm bkm tools/bkm\n");
}

std::string ZshCompletion(const Manual& manual) {
  std::string names, cases;
  for (const CommandManual& command : manual.commands) {
    absl::StrAppend(&names, "    '", ZshText(command.name), ":", ZshText(command.summary), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ")\n      _arguments -S \\\n");
    for (const OptionManual& option : command.options) {
      if (option.is_positional) continue;
      for (const std::string& name : option.names) {
        absl::StrAppend(&cases, "        '*", name, "[", ZshText(option.help), "]",
                        option.takes_value ? ":value:_files" : "", "' \\\n");
      }
    }
    absl::StrAppend(&cases, "        '*:file:_files' ;;\n");
  }
  for (const auto& own : kLauncherCommands)
    absl::StrAppend(&names, "    '", own.name, ":", ZshText(own.summary), "'\n");
  for (const OptionManual& option : manual.options) {
    for (const std::string& name : option.names)
      absl::StrAppend(&names, "    '", name, ":", ZshText(option.help), "'\n");
  }
  return absl::StrCat(
      "#compdef bkm\n"
      "# Completion of bkm for zsh: source <(bkm completion zsh), after compinit\n"
      "_bkm() {\n"
      "  local -a commands\n"
      "  commands=(\n",
      names,
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=${words[2]}\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "}\n"
      "compdef _bkm bkm tools/bkm\n");
}

std::string ManPage(const Manual& manual) {
  std::string page =
      absl::StrCat(".TH BKM 1 \"\" \"bkm ", kVersion, "\" \"User commands\"\n.SH NAME\nbkm \\- ",
                   Roff(manual.summary),
                   ".SH SYNOPSIS\n.B bkm\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n.SH OPTIONS\n");
  for (const OptionManual& option : manual.options) absl::StrAppend(&page, RoffOption(option));
  absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const CommandManual& command : manual.commands) {
    absl::StrAppend(&page, ".SS bkm ", command.name, "\n", Roff(command.summary + "."));
    for (const OptionManual& option : command.options) absl::StrAppend(&page, RoffOption(option));
    absl::StrAppend(&page, ".PP\n.nf\n", Roff(command.examples), ".fi\n");
  }
  absl::StrAppend(&page, ".SH EXIT STATUS\n", Roff(manual.footer));
  return page;
}

}  // namespace bkm
