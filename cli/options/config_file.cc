#include "cli/options/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>

#include "cli/options/secrets.h"
#include "cli/options/text.h"

namespace lockbench::cli {
namespace {

/// By Option::Type.
constexpr std::array<std::string_view, 5> kTypeNames{"text in quotes", "a whole number",
                                                     "a whole number or text in quotes", "a number",
                                                     "true or false"};

/// The value as on the command line; nothing if it has the wrong type.
std::optional<std::string> as_text(const toml::node& node, Option::Type type) {
  using enum Option::Type;
  const bool takes_integer = type == integer || type == integer_or_text || type == number;
  if (const auto* given = node.as_string(); given && (type == text || type == integer_or_text)) {
    return given->get();
  }
  if (const auto* given = node.as_integer(); given && takes_integer) {
    return fmt::format("{}", given->get());
  }
  if (const auto* given = node.as_floating_point(); given && type == number) {
    return fmt::format("{}", given->get());
  }
  if (const auto* given = node.as_boolean(); given && type == flag) {
    return given->get() ? "true" : "false";
  }
  return std::nullopt;
}

tl::expected<std::vector<std::string>, std::string> read_value(const toml::node& node,
                                                               const Option& option) {
  std::vector<std::string> values;
  bool fits = true;
  const auto take = [&](const toml::node& element) {
    const auto text = as_text(element, option.type);
    fits = fits && text.has_value();
    values.push_back(text.value_or(""));
  };
  if (const auto* list = node.as_array(); list != nullptr && option.repeatable) {
    for (const toml::node& element : *list) take(element);
  } else {
    take(node);
  }
  if (fits) return values;
  return tl::unexpected(fmt::format("must be {}{}",
                                    kTypeNames.at(static_cast<std::size_t>(option.type)),
                                    option.repeatable ? ", or a list of these" : ""));
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

/// What the parser saw may be a part of a value.
std::string without_quotations(std::string_view description) {
  const std::size_t first = description.find('\''), last = description.rfind('\'');
  const bool quotes_much = last != std::string_view::npos && last - first > 2;
  if (!quotes_much) return std::string(description);
  return fmt::format("{}...{}", description.substr(0, first), description.substr(last + 1));
}

/// A file that others can read must have no password in it.
void check_exposed(const std::string& path, const std::string& exposed, const GivenValues& given,
                   const std::vector<Option>& options) {
  if (exposed.empty()) return;
  for (const Option& option : options) {
    const auto values = given.find(option.name);
    if (!option.secret || values == given.end()) continue;
    if (std::none_of(values->second.begin(), values->second.end(), holds_password)) continue;
    throw UsageError("{}: {} has a password in it, and {}", path, option.name, exposed);
  }
}

bool is_command_table(std::string_view key, const toml::node& node) {
  const auto known = std::find(kCommandTables.begin(), kCommandTables.end(), key);
  return node.is_table() && known != kCommandTables.end();
}

GivenValues read_table(const std::string& path, const toml::table& table,
                       const std::vector<Option>& options) {
  GivenValues given;
  for (const auto& [key, node] : table) {
    if (is_command_table(key.str(), node)) continue;
    const auto option =
        std::find_if(options.begin(), options.end(),
                     [&, &name = key](const auto& o) { return o.in_file && o.name == name.str(); });
    if (option == options.end()) throw UsageError("{}: {}", path, unknown_key(key.str(), options));
    given.emplace(key.str(),
                  must(read_value(node, *option), fmt::format("{}: {}", path, key.str())));
  }
  return given;
}

/// What is for all commands, and what is for this one, which wins.
GivenValues read_tables(const std::string& path, const toml::table& file,
                        const std::vector<Option>& options, std::string_view command) {
  GivenValues shared = read_table(path, file, options);
  const toml::table* const own = file[command].as_table();
  if (own == nullptr) return shared;
  const std::string place = fmt::format("{}: [{}]", path, command);
  for (const auto& [key, node] : *own) {
    if (!node.is_table()) continue;
    throw UsageError("{}: {}", place, unknown_key(key.str(), options));
  }
  GivenValues given = read_table(place, *own, options);
  given.merge(shared);
  return given;
}

}  // namespace

GivenValues read_config_file(const std::string& path, const std::vector<Option>& options,
                             std::string_view command) {
  const GivenFile file = must(read_given_file(path));
  try {
    GivenValues given = read_tables(path, toml::parse(file.text, path), options, command);
    check_exposed(path, file.exposed, given, options);
    return given;
  } catch (const toml::parse_error& error) {
    throw UsageError("{}: line {}: {}", path, error.source().begin.line,
                     without_quotations(error.description()));
  }
}

}  // namespace lockbench::cli
