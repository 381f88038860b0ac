#include <algorithm>
#include <cctype>
#include <fstream>

#include "cli/commands/commands.h"
#include "hazards/scenario.h"
#include "results/file/loads.h"
#include "strategies/registry.h"

// The manual pages, and what the shells complete, from the declarations of commands and options.

namespace lockbench::cli {
namespace {

/// What roff would take for its own; and a hyphen is to be the one that users type.
constexpr std::pair<char, std::string_view> kRoff[] = {
    {'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'`', "\\(ga"},
    {'"', "\\(dq"}, {'^', "\\(ha"}, {'~', "\\(ti"},  {'\n', " "}};

std::string roff(std::string_view text) {
  std::string safe = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    const auto* const own = std::ranges::find(kRoff, c, &std::pair<char, std::string_view>::first);
    if (own == std::end(kRoff)) {
      safe += c;
    } else {
      safe += own->second;
    }
  }
  return safe;
}

std::string page_of(std::string_view command) {
  return command.empty() ? "lockbench" : fmt::format("lockbench-{}", command);
}

/// `what` is a sentence.
std::string head(std::string_view command, std::string_view what) {
  const std::string page = page_of(command);
  std::string title = roff(page), purpose(what);
  if (purpose.ends_with('.')) purpose.pop_back();
  const auto upper = [](unsigned char c) { return static_cast<char>(std::toupper(c)); };
  const auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  std::ranges::transform(title, title.begin(), upper);
  if (!purpose.empty()) purpose[0] = lower(static_cast<unsigned char>(purpose[0]));
  return fmt::format(
      ".TH {} 1 \"\" \"lockbench {}\" \"User Commands\"\n"
      ".nh\n.ad l\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n",
      title, roff(build_facts().version), roff(page), roff(purpose),
      roff(command.empty() ? std::string("lockbench") : fmt::format("lockbench {}", command)));
}

std::string option_entry(const Option& option) {
  const std::string value =
      option.value_name.empty() ? "" : fmt::format("\\fI{}\\fR", roff(option.value_name));
  const std::string name =
      option.positional
          ? value
          : fmt::format("\\fB\\-\\-{}\\fR{}{}", roff(option.name), value.empty() ? "" : " ", value);
  return fmt::format(".TP\n{}\n{}\n", name, roff(option.description()));
}

/// Under their headings, as help shows them.
std::string options_section(const OptionList& list) {
  constexpr std::string_view kArguments = "Arguments";
  const auto heading_of = [&](const Option& option) {
    return option.positional ? kArguments : std::string_view(option.group);
  };
  std::string text = ".SH OPTIONS\n";
  for (const auto& [heading, options] : results::grouped(list.all(), heading_of)) {
    text += fmt::format(".SS {}\n", roff(heading));
    for (const Option* option : options) text += option_entry(*option);
  }
  return text;
}

std::string command_page(const Command& command) {
  std::string text = head(command.name, command.summary);
  command.describe([&](const OptionList& options) {
    for (const Option& option : options.all()) {
      if (option.positional) text += fmt::format("[{}...]\n", roff(option.value_name));
    }
    text += fmt::format("[OPTIONS]\n.SH DESCRIPTION\n{}\n", roff(command.summary));
    text += options_section(options);
  });
  return text + fmt::format(
                    ".SH EXAMPLE\n.nf\n{}\n.fi\n"
                    ".SH SEE ALSO\n.BR lockbench (1)\n",
                    roff(command.example));
}

std::string overview_page(const std::vector<Command>& commands) {
  std::string text =
      head("", "Measure distributed locks on real servers and show what breaks them");
  text += fmt::format(
      "[COMMAND] [OPTIONS]\n.SH DESCRIPTION\n"
      "It starts private servers or uses yours, puts strategies of locking under load, audits "
      "them, "
      "and injects faults. Options without a command are those of\n.BR {} (1).\n.SH COMMANDS\n",
      roff(page_of(kDefaultCommand)));
  for (const std::string_view task : {kMeasure, kCompareResults, kDecide}) {
    text += fmt::format(".SS {}\n", roff(task));
    for (const Command& command : commands) {
      if (command.task != task) continue;
      text +=
          fmt::format(".TP\n.BR {} (1)\n{}\n", roff(page_of(command.name)), roff(command.summary));
    }
  }
  return text +
         ".SH SEE ALSO\n"
         "README.md and docs/, which packages install in /usr/share/doc/lockbench; docs/cli.md has "
         "the "
         "exit codes.\n";
}

void write_page(const std::string& folder, std::string_view command, const std::string& text) {
  const std::string file = fmt::format("{}/{}.1", folder, page_of(command));
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw UsageError("cannot write {}", file);
}

// Completion.

std::vector<std::string_view> values_of(const Option& option) {
  const std::string_view kind = option.value_name;
  if (kind == "FILE" || kind == "DIR") return {"/"};
  if (kind == "STRATEGY" || kind == "STRATEGY,...") {
    return results::each_of(all_strategies(), &Descriptor::name);
  }
  if (kind == "SCENARIO") {
    return results::each_of(hazards::all_scenarios(), &hazards::Scenario::name);
  }
  return option.choices;
}

/// The first clause of a help text.
std::string_view gist(std::string_view help) { return help.substr(0, help.find_first_of(":;")); }

void print_candidate(std::string_view typed, std::string_view word, std::string_view meaning) {
  if (word.starts_with(typed)) fmt::print("{}\t{}\n", word, meaning);
}

/// `before` is the part of the word that stands before the value: "--format=".
void print_values(const Option& option, std::string before, std::string_view typed) {
  const std::size_t comma = option.comma_separated ? typed.rfind(',') : std::string_view::npos;
  if (comma != std::string_view::npos) {
    before += typed.substr(0, comma + 1);
    typed.remove_prefix(comma + 1);
  }
  for (const std::string_view value : values_of(option)) {
    if (value == "/") {
      fmt::print("/\n");
    } else if (value.starts_with(typed)) {
      fmt::print("{}{}\t{}\n", before, value, gist(option.help));
    }
  }
}

/// The option in whose place a value is expected; null: none.
const Option* with_value(const OptionList& options, std::string_view word) {
  const Option* const option = word.starts_with("--") ? options.find(word.substr(2)) : nullptr;
  return option == nullptr || option->flag ? nullptr : option;
}

void print_words(const OptionList& options, std::string_view before, std::string_view typed) {
  if (const Option* const option = with_value(options, before)) {
    return print_values(*option, "", typed);
  }
  const std::size_t equals = typed.find('=');
  if (typed.starts_with('-') && equals != std::string_view::npos) {
    const Option* const option = with_value(options, typed.substr(0, equals));
    if (option == nullptr) return;
    return print_values(*option, std::string(typed.substr(0, equals + 1)),
                        typed.substr(equals + 1));
  }
  for (const Option& option : options.all()) {
    if (option.positional && !typed.starts_with('-')) print_values(option, "", typed);
    if (!option.positional && typed.starts_with('-')) {
      print_candidate(typed, fmt::format("--{}", option.name), gist(option.help));
    }
  }
  if (typed.starts_with('-')) print_candidate(typed, "--help", "show the command's options");
}

}  // namespace

void write_manual(const std::vector<Command>& commands, const std::string& folder) {
  write_page(folder, "", overview_page(commands));
  for (const Command& command : commands) write_page(folder, command.name, command_page(command));
}

void print_completions(const std::vector<Command>& commands, std::span<const std::string> words) {
  std::vector<std::string_view> before(words.begin(), words.end());
  const std::string_view last = before.empty() ? "" : before.back();
  if (!before.empty()) before.pop_back();
  // Bash gives "--format=table" as three words.
  const std::string_view typed = last == "=" ? "" : last;
  std::erase(before, "=");
  if (before.empty() && !typed.starts_with('-')) {
    for (const Command& command : commands) print_candidate(typed, command.name, command.summary);
    return;
  }
  const bool named = !before.empty() && !before.front().starts_with('-');
  const auto command =
      std::ranges::find(commands, named ? before.front() : kDefaultCommand, &Command::name);
  if (command == commands.end()) return;
  if (before.empty()) print_candidate(typed, "--version", "show the version");
  command->describe([&](const OptionList& options) {
    print_words(options, before.empty() ? "" : before.back(), typed);
  });
}

}  // namespace lockbench::cli
