#include "loadgen/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

constexpr std::size_t kLongestLine = 128;

/// The number of the field at the front, which it takes away with its comma; nothing if it is none.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::string_view field = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), field.size() + 1));
  return parse_number<std::uint64_t>(field);
}

struct Request {
  std::uint64_t transaction = 0;
  Wanted wanted;
};

tl::expected<Request, std::string> parse(std::string_view text) {
  const auto wrong = [](std::string what) { return tl::unexpected(std::move(what)); };
  const auto commas = std::count(text.begin(), text.end(), ',');
  const bool has_task = commas == 4;
  if (commas != 3 && !has_task) {
    return wrong("transaction,task,type,lock,mode are expected, such as 17,0,1,1203,2");
  }
  const auto transaction = take_number(text);
  if (!transaction) return wrong("the transaction is no whole number");
  if (has_task && take_number(text) != 0U) return wrong("the task is not 0, a request for a lock");
  if (!take_number(text)) return wrong("the type is no whole number");
  const auto lock = take_number(text);
  if (!lock || *lock >= std::uint64_t{Trace::kMostKeys}) {
    return wrong(fmt::format("the lock is no whole number below {}", Trace::kMostKeys));
  }
  const auto mode = take_number(text);
  if (mode != 1U && mode != 2U) return wrong("the mode is neither 1, shared, nor 2, exclusive");
  return Request{*transaction,
                 {static_cast<int>(*lock), *mode == 1U ? Mode::shared : Mode::exclusive}};
}

}  // namespace

tl::expected<Trace, std::string> Trace::read(const std::string& path, TraceLocks* locks) {
  // Each run reads it again.
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return tl::unexpected(fmt::format("{}: there is no such file", path));
  }
  std::ifstream file(path);
  if (!file) return tl::unexpected(fmt::format("{}: cannot be read", path));
  auto all = read_trace(file, path);
  if (!all) return tl::unexpected(all.error());
  if (all->ends.empty()) return tl::unexpected(fmt::format("{}: no transactions", path));
  const auto highest = std::ranges::max_element(all->locks, {}, &Wanted::key);
  Trace trace{.path = path, .keys = highest->key + 1, .transactions = all->ends.size()};
  if (locks != nullptr) *locks = *std::move(all);
  return trace;
}

tl::expected<TraceLocks, std::string> read_trace(std::istream& lines, std::string_view name) {
  TraceLocks all;
  std::uint64_t number = 0;  // of the line
  const auto wrong = [&](std::string_view what) {
    return tl::unexpected(fmt::format("{}: line {}: {}", name, number, what));
  };
  std::array<char, kLongestLine + 1> line{};
  std::optional<std::uint64_t> transaction;
  std::size_t begin = 0;  // of its locks
  while (lines.getline(line.data(), line.size())) {
    ++number;
    const auto taken = static_cast<std::size_t>(lines.gcount());
    std::string_view text(line.data(), taken - (lines.eof() ? 0 : 1));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text.starts_with('#')) continue;
    const auto request = parse(text);
    if (!request) return wrong(request.error());
    if (transaction != request->transaction) {
      if (transaction) all.ends.push_back(all.locks.size());
      transaction = request->transaction;
      begin = all.locks.size();
    }
    const std::span own = std::span(all.locks).subspan(begin);
    const auto same = std::ranges::find(own, request->wanted.key, &Wanted::key);
    if (same == own.end()) {
      if (own.size() == Trace::kMostLocks) return wrong("too many locks of one transaction");
      all.locks.push_back(request->wanted);
    } else if (request->wanted.mode == Mode::exclusive) {
      same->mode = Mode::exclusive;
    }
  }
  if (!lines.eof()) {
    ++number;
    return wrong(lines.bad() ? "cannot be read" : "too long");
  }
  if (transaction) all.ends.push_back(all.locks.size());
  return all;
}

}  // namespace lockbench::loadgen
