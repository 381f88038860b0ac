#include "cli/options/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/options/text.h"

namespace lockbench::cli {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;

tl::expected<std::string, UsageError> read_text(const std::string& path) {
  std::string text(kLargestFile + 1, '\0');
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return tl::unexpected(
        UsageError{fmt::format("{}: cannot be read: {}", path, std::strerror(errno))});
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestFile) {
    return tl::unexpected(UsageError{fmt::format("{}: larger than 1 MiB", path)});
  }
  return text;
}

std::string_view type_name(Option::Type type) {
  switch (type) {
    case Option::Type::text:
      return "text in quotes";
    case Option::Type::integer:
      return "a whole number";
    case Option::Type::integer_or_text:
      return "a whole number or text in quotes";
    case Option::Type::number:
      return "a number";
    case Option::Type::flag:
      return "true or false";
  }
  return "?";
}

/// The value as on the command line; nothing if it has the wrong type.
std::optional<std::string> as_text(const toml::node& node, Option::Type type) {
  using Type = Option::Type;
  const bool takes_integer =
      type == Type::integer || type == Type::integer_or_text || type == Type::number;
  if (const auto* text = node.as_string()) {
    if (type != Type::text && type != Type::integer_or_text) return std::nullopt;
    return text->get();
  }
  if (const auto* integer = node.as_integer()) {
    if (!takes_integer) return std::nullopt;
    return fmt::format("{}", integer->get());
  }
  if (const auto* number = node.as_floating_point()) {
    if (type != Type::number) return std::nullopt;
    return fmt::format("{}", number->get());
  }
  if (const auto* flag = node.as_boolean()) {
    if (type != Type::flag) return std::nullopt;
    return flag->get() ? "true" : "false";
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
  return tl::unexpected(fmt::format("must be {}{}", type_name(option.type),
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

tl::expected<GivenValues, UsageError> read_table(const std::string& path, const toml::table& table,
                                                 const std::vector<Option>& options) {
  GivenValues given;
  for (const auto& [key, node] : table) {
    const auto option =
        std::find_if(options.begin(), options.end(),
                     [&, &name = key](const auto& o) { return o.in_file && o.name == name.str(); });
    if (option == options.end()) {
      return tl::unexpected(
          UsageError{fmt::format("{}: {}", path, unknown_key(key.str(), options))});
    }
    auto values = read_value(node, *option);
    if (!values) {
      return tl::unexpected(UsageError{fmt::format("{}: {}: {}", path, key.str(), values.error())});
    }
    given.emplace(key.str(), std::move(*values));
  }
  return given;
}

}  // namespace

tl::expected<GivenValues, UsageError> read_config_file(const std::string& path,
                                                       const std::vector<Option>& options) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  try {
    return read_table(path, toml::parse(*text, path), options);
  } catch (const toml::parse_error& error) {
    return tl::unexpected(UsageError{
        fmt::format("{}: line {}: {}", path, error.source().begin.line, error.description())});
  }
}

}  // namespace lockbench::cli
