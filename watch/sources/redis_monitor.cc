#include "watch/sources/redis_monitor.h"

#include <algorithm>

#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

/// Keys that one window remembers.
constexpr std::size_t kMostRemembered = 10'000;

}  // namespace

void MonitorView::expired(const std::string& key, const std::string& owner) {
  if (expired_.size() >= kMostRemembered) expired_.erase(expired_.begin());
  expired_[key] = owner;
}

void MonitorView::take(const MonitoredCommand& command, const RedisBook& book) {
  using What = MonitoredCommand::What;
  const std::string& key = command.key;
  if (const auto lost = expired_.find(key); lost != expired_.end()) {
    const auto& words = command.words;
    const bool theirs = std::find(words.begin() + 1, words.end(), lost->second) != words.end();
    if (theirs && command.what != What::attempt) {
      found_[key].overran = true;
      expired_.erase(lost);
    }
  }
  const auto has_room = [&](const auto& keys) {
    return keys.size() < kMostRemembered || keys.contains(key);
  };
  if (command.what == What::named || !has_room(held_) || !has_room(found_)) return;
  bool& held = held_.try_emplace(key, book.is_held(key)).first->second;
  // What has expired is no command.
  if (held && command.what == What::attempt && !book.is_held(key)) held = false;
  // The book may have heard of the grant before it came by here.
  const bool granted = std::ranges::any_of(
      command.words, [&](const std::string& word) { return book.is_held_by(key, word); });
  if (command.what == What::attempt && held && !granted) ++found_[key].refused;
  held = command.what != What::released;
}

void RedisMonitor::close() {
  constexpr int kPauses = 9;
  feed_.close();
  open_ = false;
  turns_at_ = env_.now() + kPauses * window_;
}

StoreResult<void> RedisMonitor::step(const std::vector<std::string>& patterns,
                                     const RedisBook& book, const std::stop_token& stop) {
  constexpr int kMostLines = 20'000;
  const TimePoint now = env_.now();
  if (now >= turns_at_ && open_) {
    close();
  } else if (now >= turns_at_) {
    open_ = true;
    turns_at_ = now + window_;
    view_.open();
    if (auto begun = feed_.call({"MONITOR"}, stop); !begun) {
      close();
      return tl::unexpected(std::move(begun.error()));
    }
  }
  for (int lines = 0; open_ && lines < kMostLines; ++lines) {
    auto line = feed_.next(Duration::zero(), stop);
    if (!line) close();  // the next window connects again
    if (!line || !*line) break;
    const auto command = read_monitored((*line)->text);
    if (command && matches_any(patterns, command->key)) view_.take(*command, book);
  }
  return {};
}

}  // namespace lockbench::watch
