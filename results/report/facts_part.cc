#include <fmt/format.h>
#include <fmt/ranges.h>

#include "results/file/option_values.h"
#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/tables/ranks.h"
#include "results/tables/runs.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

std::string joined(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

Table environment_table(const Result& result) {
  const Environment& environment = result.environment;
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  Table table{.caption = "Environment", .titles = {"what", "which"}};
  const auto add = [&table](const std::string& what, const std::string& which) {
    if (!which.empty()) table.rows.push_back({{what}, {which}});
  };
  add("begun", result.started_at);
  add("result", result.id);
  add("lockbench",
      joined({result.lockbench.version, result.lockbench.commit, result.lockbench.build_type}));
  add("processor", fmt::format("{}, {} cores", environment.cpu, environment.cores));
  add("memory", fmt::format("{:.1f} GiB", static_cast<double>(environment.memory_bytes) / kGiB));
  add("kernel", environment.kernel);
  for (const auto& [name, server] : environment.servers) {
    const std::string secured = server.encryption ? ", " + *server.encryption : "";
    add(name, fmt::format("{} at {}{}", server.version, joined(server.endpoints), secured));
  }
  return table;
}

Table workload_table(const Result& result) {
  Table table{.caption = "All settings (durations in seconds)", .titles = {"option", "value"}};
  for (const auto& [name, value] : result.workload) {
    const std::string text = value_text(value);
    if (!text.empty() && !is_of_output(name)) table.rows.push_back({{name}, {text}});
  }
  return table;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string out = "'";
  for (const char c : printable(word)) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// Harmless in a shell, whatever the file holds.
std::string command_line(const std::vector<std::string>& words) {
  std::string line = "lockbench";
  for (const std::string& word : words) line += " " + shell_quoted(word);
  return line;
}

}  // namespace

Table captioned(std::string caption, const results::Table& table) {
  Table out{.caption = std::move(caption), .rows = table.rows};
  for (const Column& column : table.columns) out.titles.push_back(title(column));
  return out;
}

void add_facts_section(const Source& source, Part& part) {
  Section section{.title = "How it was made"};
  if (!source.result.command.empty()) {
    section.blocks.emplace_back(
        Code{"The command to repeat it", command_line(source.result.command)});
  }
  Remarks said;
  for (const std::string& note : notes(source.result)) {
    const bool bad = note.starts_with("invalid") || note.starts_with("failure");
    said.push_back({bad ? Tone::doubtful : Tone::plain, note});
  }
  if (!said.empty()) section.blocks.emplace_back(std::move(said));
  if (const results::Table ranks = rank_table(source.result); !ranks.rows.empty()) {
    section.blocks.emplace_back(captioned("Ranks", ranks));
  }
  section.blocks.emplace_back(environment_table(source.result));
  section.blocks.emplace_back(workload_table(source.result));
  part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
