#include "loadgen/run/hot_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/tables/text.h"

namespace lockbench::loadgen {
namespace {

constexpr std::string_view kForm = "share=50%,keys=2500,move=10s";
constexpr Duration kShortestMove = std::chrono::milliseconds(1);

/// False: there is no such part, or its value is out of range.
bool set_part(HotSet& hot, std::string_view name, std::string_view value) {
  if (name == "share" && value.ends_with('%')) {
    value.remove_suffix(1);
    const auto percent = results::parse_number<double>(value);
    if (!percent || !(*percent > 0 && *percent <= 100)) return false;
    hot.share = *percent / 100;
    return true;
  }
  if (name == "keys") {
    const auto keys = results::parse_number<int>(value);
    hot.keys = keys.value_or(0);
    return hot.keys >= 1;
  }
  if (name != "move") return false;
  const auto move = parse_duration(value);
  if (!move || *move < kShortestMove) return false;
  hot.moves_every = *move;
  return true;
}

}  // namespace

tl::expected<HotSet, std::string> HotSet::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return tl::unexpected(fmt::format("\"{}\": {}; a hot set is written as {}", text, why, kForm));
  };
  HotSet hot;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const bool set = equals != std::string_view::npos &&
                     set_part(hot, part.substr(0, equals), part.substr(equals + 1));
    if (!set) return wrong(fmt::format("\"{}\" is no part of one", part));
  }
  if (hot.share == 0 || hot.keys == 0) return wrong("the share and the keys are needed");
  return hot;
}

std::string HotSet::to_string() const {
  std::string text = fmt::format("share={:.12g}%,keys={}", share * 100, keys);
  if (moves_every) text += ",move=" + format_duration(*moves_every);
  return text;
}

}  // namespace lockbench::loadgen
