#include "cli/commands/commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "hazards/scenario.h"
#include "strategies/store.h"
#include "tests/folders.h"

namespace lockbench::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A command line of a page, and its place.
struct Shown {
  std::string place, line;
};

/// The lines of the blocks without a language, or in a shell's; "text" marks what is no command.
std::vector<Shown> shown_in(const fs::path& page) {
  std::ifstream file(LOCKBENCH_SOURCE_DIR / page);
  std::vector<Shown> lines;
  std::string block;  ///< "```" and its language
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(text, 3, "```") == 0) {
      block = block.empty() ? line.substr(text) : "";
      continue;
    }
    static const std::set<std::string> shells{"```", "```sh", "```bash", "```console"};
    if (!shells.contains(block)) continue;
    const bool continues = !lines.empty() && lines.back().line.ends_with('\\');
    if (continues) {
      lines.back().line.back() = ' ';
      lines.back().line += line;
    } else {
      lines.push_back({fmt::format("{}:{}", page.string(), number), line});
    }
  }
  return lines;
}

/// The commands of a line as a shell splits it: at &&, |, ; and >; without its prompt and comment.
std::vector<Words> commands_in(const std::string& line) {
  std::vector<Words> commands(1);
  std::string word;
  bool in_word = false;
  char quote = '\0';
  const auto end_word = [&] {
    if (in_word && word != "$") commands.back().push_back(word);
    word.clear();
    in_word = false;
  };
  for (const char c : line) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
      if (quote != '\0') word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '#' && !in_word) {
      break;
    } else if (c == '&' || c == '|' || c == ';' || c == '>') {
      end_word();
      commands.emplace_back();
    } else if (c == ' ') {
      end_word();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

/// The arguments of lockbench; nothing if the command is another one.
std::optional<Words> arguments_of(const Words& command) {
  if (command.empty()) return std::nullopt;
  const std::string& first = command.front();
  auto program = command.begin();
  if (first == "./dev" || first == "mpirun" || first == "srun") {
    program = std::ranges::find(command, "lockbench");
  } else if (first != "./run.sh" && first != "lockbench") {
    program = command.end();
  }
  if (program == command.end()) return std::nullopt;
  Words arguments(program + 1, command.end());
  // An option of the script's own, with its value.
  const bool of_script = first == "./run.sh" && arguments.size() > 1 && arguments[0] == "--stores";
  if (of_script) arguments.erase(arguments.begin(), arguments.begin() + 2);
  // A client program is started to ask what it is.
  for (auto at = arguments.begin(); at != arguments.end();) {
    const bool client = *at == "--client" && at + 1 != arguments.end();
    at = client ? arguments.erase(at, at + 2) : at + 1;
  }
  return arguments;
}

bool is_scenario(const std::string& pattern) {
  return std::ranges::any_of(hazards::all_scenarios(),
                             [&](const auto* one) { return matches(pattern, one->name); });
}

bool is_strategy(const std::string& pattern) {
  return std::ranges::any_of(with_absent(),
                             [&](const auto* one) { return matches(pattern, one->name); });
}

/// Words that look like the name of a strategy, and are none.
std::string unknown_name(const Words& arguments) {
  for (const std::string& argument : arguments) {
    for (const std::string& part : results::split_at_commas(argument)) {
      const std::string family = part.substr(0, part.find('-'));
      const bool plain =
          part.find_first_not_of("abcdefghijklmnopqrstuvwxyz-*") == std::string::npos;
      const bool named =
          plain && family != part && (find_store_kind(family) != nullptr || family == "redlock");
      if (named && !is_strategy(part) && !is_scenario(part)) return part;
    }
  }
  const bool plays = arguments.front() == "hazards";
  for (std::size_t i = 1; plays && i < arguments.size() && !arguments[i].starts_with('-'); ++i) {
    if (!is_scenario(arguments[i])) return arguments[i];
  }
  const auto explained = std::ranges::find(arguments, "--explain");
  if (explained == arguments.end() || explained + 1 == arguments.end()) return "";
  const std::string cell = *(explained + 1);
  const std::size_t slash = std::min(cell.find('/'), cell.size() - 1);
  const bool known = is_scenario(cell.substr(0, slash)) && is_strategy(cell.substr(slash + 1));
  return known ? "" : cell;
}

/// Why lockbench would refuse the arguments; empty: it would not. The files that an example names
/// are not there, and a build may lack a store.
std::string refusal(const Words& arguments) {
  if (arguments.empty() || arguments.front() == "--help") return "";
  const std::vector<Command> commands = all_commands();
  const auto command = std::ranges::find(commands, arguments.front(), &Command::name);
  if (command == commands.end()) return "no such command";
  try {
    command->check(std::span(arguments).subspan(1));
  } catch (const UsageError& error) {
    const std::string& why = error.message();
    for (const char* const here : {"cannot be read", "o such file", "this build is without"}) {
      if (why.find(here) != std::string::npos) return "";
    }
    return why;
  }
  return unknown_name(arguments);
}

std::vector<fs::path> pages_with_commands() {
  std::vector<fs::path> pages{"README.md", "choose/README.md", "dashboards/README.md",
                              "results/README.md"};
  for (const auto& entry : fs::directory_iterator(LOCKBENCH_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back("docs" / entry.path().filename());
  }
  return pages;
}

TEST(Commands, ThatPagesShowAreThoseThatLockbenchTakes) {
  int seen = 0;
  for (const fs::path& page : pages_with_commands()) {
    for (const auto& [place, line] : shown_in(page)) {
      for (const Words& command : commands_in(line)) {
        const auto arguments = arguments_of(command);
        if (!arguments) continue;
        ++seen;
        EXPECT_EQ(refusal(*arguments), "") << place << ": " << line;
      }
    }
  }
  EXPECT_GT(seen, 60);
}

TEST(Commands, ThatLockbenchDoesNotTakeAreFound) {
  const auto refused = [](const std::string& line) {
    return refusal(arguments_of(commands_in(line).at(0)).value());
  };
  EXPECT_EQ(refused("$ lockbench run 'redis-*' --hold 'exp(2ms)'  # a comment"), "");
  EXPECT_EQ(refused("./run.sh run redis-queue --config missing.toml"), "");
  EXPECT_EQ(refused("./run.sh --stores redis hazards --quick"), "");
  EXPECT_NE(refused("./run.sh rnu"), "");
  EXPECT_NE(refused("./run.sh run --clinets 3"), "");
  EXPECT_NE(refused("mpirun -np 2 lockbench run --clients 0"), "");
  EXPECT_NE(refused("./run.sh run --linger 5s"), "") << "needs another option";
  EXPECT_EQ(refused("./run.sh run redis-quue"), "redis-quue");
  EXPECT_EQ(refused("./run.sh hazards crsh-holding --quick"), "crsh-holding");
  EXPECT_EQ(refused("./run.sh hazards --explain crash-holding/none-such"),
            "crash-holding/none-such");
  EXPECT_FALSE(arguments_of(commands_in("useradd lockbench").at(0)));
}

}  // namespace
}  // namespace lockbench::cli
