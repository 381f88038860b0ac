#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>

#include "choose/answer.h"

// The files of choose/code are named STRATEGY.USE.EXTENSION. Tests run each of them.

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 3> kUseNames{"mutex", "once", "leader"};
constexpr std::pair<std::string_view, std::string_view> kLanguages[] = {
    {"sql", "any"}, {"py", "Python"}, {"mjs", "JavaScript"}, {"go", "Go"}, {"java", "Java"}};

/// Its language if it is for that strategy and use, else empty.
std::string_view language_of(const EmbeddedFile& file, std::string_view strategy, Use use) {
  const std::string stem =
      fmt::format("{}.{}.", strategy, kUseNames.at(static_cast<std::size_t>(use)));
  if (!file.name.starts_with(stem)) return "";
  for (const auto& [extension, language] : kLanguages) {
    if (file.name.substr(stem.size()) == extension) return language;
  }
  return "";
}

Duration duration_of(const std::vector<Setting>& settings, std::string_view option,
                     Duration otherwise) {
  const auto found = std::ranges::find(settings, option, &Setting::option);
  return found == settings.end() ? otherwise : parse_duration(found->value).value_or(otherwise);
}

}  // namespace

bool is_recipe(const Descriptor& strategy) { return strategy.source == "lockbench's own design"; }

bool implements(const Descriptor& strategy, Use use, const std::string& language) {
  const auto fits = [&](std::string_view one) { return one == language || one == "any"; };
  const bool known = std::ranges::any_of(
      strategy.libraries, [&](const Library& one) { return !one.similar && fits(one.language); });
  const auto files = code_files();
  return known || std::ranges::any_of(files, [&](const EmbeddedFile& file) {
           return fits(language_of(file, strategy.name, use));
         });
}

std::vector<Code> code_for(const Descriptor& strategy, const Requirements& requirements,
                           const std::vector<Setting>& settings) {
  const Duration ttl = duration_of(settings, "--ttl", 10s),
                 wait = duration_of(settings, "--acquire-timeout", 30s);
  const auto& wanted = requirements.languages;
  const std::vector<Library> libraries = libraries_for(strategy, requirements);
  std::vector<Code> found;
  for (const EmbeddedFile& file : code_files()) {
    const std::string language(
        language_of(file, strategy.name, requirements.use.value_or(Use::mutex)));
    if (language.empty()) continue;
    const bool asked =
        wanted.empty() || language == "any" || std::ranges::find(wanted, language) != wanted.end();
    // Re-entrancy is mostly a matter of the library.
    const bool reenters =
        !requirements.reentrant || language == "any" ||
        std::ranges::find(libraries, language, &Library::language) != libraries.end();
    if (!asked || !reenters) continue;
    std::string text(file.text);
    for (const auto& [name, value] : {std::pair("ttl", ttl), std::pair("wait", wait)}) {
      const std::int64_t milliseconds = ceil_milliseconds(value);
      boost::replace_all(text, fmt::format("{{{}_ms}}", name), std::to_string(milliseconds));
      boost::replace_all(text, fmt::format("{{{}_s}}", name),
                         std::to_string((milliseconds + 999) / 1000));
    }
    found.push_back({language, std::move(text)});
  }
  return found;
}

}  // namespace lockbench::choose
