#include "loadgen/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "loadgen/run/demand.h"
#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

/// The number of the field at the front, which it takes away with its comma; nothing if it is none.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::string_view field = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), field.size() + 1));
  return parse_number<std::uint64_t>(field);
}

}  // namespace

tl::expected<Trace, std::string> Trace::read(const std::string& path) {
  // Each run reads it again.
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return tl::unexpected(fmt::format("{}: there is no such file", path));
  }
  std::ifstream file(path);
  if (!file) return tl::unexpected(fmt::format("{}: cannot be read", path));
  TraceReader reader(file, path);
  Trace trace{.path = path};
  std::vector<Wanted> locks;
  while (true) {
    const auto more = reader.next(locks);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    ++trace.transactions;
    for (const Wanted& wanted : locks) trace.keys = std::max(trace.keys, wanted.key + 1);
  }
  if (trace.transactions == 0) return tl::unexpected(fmt::format("{}: no transactions", path));
  return trace;
}

tl::expected<bool, std::string> TraceReader::next(std::vector<Wanted>& locks) {
  locks.clear();
  if (!read_ahead_) {
    auto first = next_request();
    if (!first) return tl::unexpected(std::move(first.error()));
    read_ahead_ = *first;
  }
  if (!read_ahead_) return false;
  const std::uint64_t transaction = read_ahead_->transaction;
  while (read_ahead_ && read_ahead_->transaction == transaction) {
    const Wanted wanted{.key = read_ahead_->lock, .mode = read_ahead_->mode};
    const auto same = std::find_if(locks.begin(), locks.end(),
                                   [&](const Wanted& one) { return one.key == wanted.key; });
    if (same == locks.end()) {
      if (locks.size() == Trace::kMostLocks) return wrong("too many locks of one transaction");
      locks.push_back(wanted);
    } else if (wanted.mode == Mode::exclusive) {
      same->mode = Mode::exclusive;
    }
    auto following = next_request();
    if (!following) return tl::unexpected(std::move(following.error()));
    read_ahead_ = *following;
  }
  return true;
}

tl::expected<std::optional<TraceReader::Request>, std::string> TraceReader::next_request() {
  while (lines_.getline(line_.data(), line_.size())) {
    ++number_;
    const auto taken = static_cast<std::size_t>(lines_.gcount());
    std::string_view text(line_.data(), taken - (lines_.eof() ? 0 : 1));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text.starts_with('#')) continue;
    auto request = parse(text);
    if (!request) return tl::unexpected(std::move(request.error()));
    return *request;
  }
  if (lines_.eof()) return std::nullopt;
  ++number_;
  return wrong(lines_.bad() ? "cannot be read" : "too long");
}

tl::expected<TraceReader::Request, std::string> TraceReader::parse(std::string_view text) const {
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
  return Request{.transaction = *transaction,
                 .lock = static_cast<int>(*lock),
                 .mode = *mode == 1U ? Mode::shared : Mode::exclusive};
}

tl::unexpected<std::string> TraceReader::wrong(std::string_view what) const {
  return tl::unexpected(fmt::format("{}: line {}: {}", name_, number_, what));
}

}  // namespace lockbench::loadgen
