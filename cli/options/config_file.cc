#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "cli/options/option.h"

namespace lockbench::cli {
namespace {

/// The commands that can have their own table in the file, so that one file serves them all.
constexpr std::array<std::string_view, 3> kCommandTables{"run", "capacity", "choose"};

struct GivenFile {
  std::string text;
  /// Why the file is not safe for secrets: another user owns it, or others have access. Empty if it
  /// is ours or root's alone, or a credential that systemd passed.
  std::string exposed;
};

/// Credentials need no check of their mode: systemd gives only the unit's user access to the
/// folder, and the mask of their access list looks like group permissions.
bool is_credential(const std::string& path) {
  const char* const folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder != nullptr && *folder == '/' && path.starts_with(std::string(folder) + "/") &&
         path.find("/../") == std::string::npos;
}

std::string exposure(const struct stat& file, const std::string& path) {
  if (is_credential(path)) return {};
  if (file.st_uid != 0 && file.st_uid != geteuid()) return "the file belongs to another user";
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return fmt::format("the file is open to other users: chmod 600 {}", path);
}

/// Reads a file of at most 1 MiB. The error names it and says why it cannot be read.
tl::expected<GivenFile, std::string> read_given_file(const std::string& path) {
  constexpr std::size_t kLargestFile = 1 << 20;
  const auto failed = [&] {
    return tl::unexpected(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  struct stat facts {};
  if (file == nullptr || fstat(fileno(file.get()), &facts) != 0) return failed();
  GivenFile given{.text = {}, .exposed = exposure(facts, path)};
  std::array<char, 4096> piece;
  // A pipe has no size to ask for.
  while (given.text.size() <= kLargestFile) {
    const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
    if (std::ferror(file.get()) != 0) return failed();
    given.text.append(piece.data(), got);
    if (got < piece.size()) return given;
  }
  return tl::unexpected(fmt::format("{}: larger than 1 MiB", path));
}

/// The value as on the command line; nothing for an array, a table, a date or a time.
std::optional<std::string> as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

tl::expected<std::vector<std::string>, std::string> read_value(const toml::node& node,
                                                               const Option& option) {
  std::vector<std::string> values;
  bool fits = true;
  const auto take = [&](const toml::node& element) {
    const auto text = as_text(element);
    fits = fits && text.has_value();
    values.push_back(text.value_or(""));
  };
  if (const auto* list = node.as_array(); list != nullptr && option.repeatable) {
    for (const toml::node& element : *list) take(element);
  } else {
    take(node);
  }
  if (fits) return values;
  return tl::unexpected<std::string>(option.repeatable
                                         ? "must be a string or a list of strings"
                                         : "must be a string, a number, true or false");
}

std::string unknown_key(std::string_view key, const std::vector<Option>& options) {
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    if (option.in_file) names.push_back(option.name);
  }
  const std::string suggestion = did_you_mean(key, names);
  return fmt::format(
      "unknown key \"{}\"{}", key,
      suggestion.empty() ? fmt::format(": allowed are {}", fmt::join(names, ", ")) : suggestion);
}

/// The parser may quote part of a value, which may be a secret.
std::string without_quotations(std::string_view description) {
  const std::size_t first = description.find('\''), last = description.rfind('\'');
  const bool quotes_much = last != std::string_view::npos && last - first > 2;
  if (!quotes_much) return std::string(description);
  return fmt::format("{}...{}", description.substr(0, first), description.substr(last + 1));
}

/// `place` names the file, or the table in it. `skipped`: skips the tables of commands.
GivenValues read_table(const std::string& place, const toml::table& table,
                       const std::vector<Option>& options, bool skipped) {
  GivenValues given;
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (skipped && node.is_table() && std::ranges::count(kCommandTables, name) > 0) continue;
    const auto option = std::ranges::find_if(
        options, [&](const Option& one) { return one.in_file && one.name == name; });
    if (option == options.end()) throw UsageError("{}: {}", place, unknown_key(name, options));
    given.emplace(name, must(read_value(node, *option), fmt::format("{}: {}", place, name)));
  }
  return given;
}

}  // namespace

GivenValues read_config_file(const std::string& path, const std::vector<Option>& options,
                             std::string_view command) {
  const GivenFile file = must(read_given_file(path));
  GivenValues given;
  try {
    const toml::table all = toml::parse(file.text, path);
    GivenValues shared = read_table(path, all, options, true);
    if (const toml::table* const own = all[command].as_table()) {
      given = read_table(fmt::format("{}: [{}]", path, command), *own, options, false);
    }
    given.merge(shared);
  } catch (const toml::parse_error& error) {
    throw UsageError("{}: line {}: {}", path, error.source().begin.line,
                     without_quotations(error.description()));
  }
  for (const Option& option : options) {
    const auto values = given.find(option.name);
    if (file.exposed.empty() || !option.secret || values == given.end()) continue;
    if (std::ranges::none_of(values->second, holds_password)) continue;
    throw UsageError("{}: {} has a password in it, and {}", path, option.name, file.exposed);
  }
  return given;
}

tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path) {
  const auto file = read_given_file(path);
  if (!file) return tl::unexpected(file.error());
  if (!file->exposed.empty()) return tl::unexpected(fmt::format("{}: {}", path, file->exposed));
  std::vector<std::string> lines = lines_with_values(file->text);
  if (lines.empty()) return tl::unexpected(fmt::format("{}: the file is empty", path));
  return lines;
}

std::vector<std::string> lines_with_values(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string::npos) continue;
    lines.push_back(line.substr(first, line.find_last_not_of(kBlanks) + 1 - first));
  }
  return lines;
}

}  // namespace lockbench::cli
