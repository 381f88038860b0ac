#include "tests/support/fake_pub_sub.h"

namespace lockbench::redis {

class FakePubSub::Client : public Subscriber {
 public:
  explicit Client(FakePubSub& server) : server_(server) {}

  StoreResult<void> connect(const std::stop_token&) override {
    const std::scoped_lock lock(server_.mutex_);
    if (server_.connected_) return {};
    server_.connected_ = true;
    ++server_.connections_;
    return {};
  }

  StoreResult<void> subscribe(const std::string& channel) override {
    const std::scoped_lock lock(server_.mutex_);
    if (!server_.connected_) return gone();
    if (server_.refuses_) {
      server_.connected_ = false;
      server_.changed_.notify_all();
      return gone();
    }
    server_.channels_.insert(channel);
    if (server_.confirms_) push({Push::Kind::subscribed, channel});
    return {};
  }

  StoreResult<void> unsubscribe(const std::string& channel) override {
    const std::scoped_lock lock(server_.mutex_);
    if (!server_.connected_) return gone();
    server_.channels_.erase(channel);
    push({Push::Kind::unsubscribed, channel});
    return {};
  }

  StoreResult<std::optional<Push>> receive(Duration longest, const std::stop_token& stop) override {
    std::unique_lock lock(server_.mutex_);
    server_.changed_.wait_for(lock, stop, longest,
                              [this] { return !server_.connected_ || !server_.pushes_.empty(); });
    if (!server_.connected_ || stop.stop_requested()) return gone();
    if (server_.pushes_.empty()) return std::nullopt;
    Push push = std::move(server_.pushes_.front());
    server_.pushes_.pop_front();
    return push;
  }

 private:
  static tl::unexpected<StoreError> gone() {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "fake:1: gone"});
  }
  void push(Push push) {
    server_.pushes_.push_back(std::move(push));
    server_.changed_.notify_all();
  }

  FakePubSub& server_;
};

std::unique_ptr<Subscriber> FakePubSub::make_subscriber(const Endpoint&, const Timeouts&, Env&) {
  return std::make_unique<Client>(*this);
}

void FakePubSub::confirm_at_once(bool at_once) {
  const std::scoped_lock lock(mutex_);
  confirms_ = at_once;
}

void FakePubSub::confirm(const std::string& channel) {
  const std::scoped_lock lock(mutex_);
  pushes_.push_back({Push::Kind::subscribed, channel});
  changed_.notify_all();
}

void FakePubSub::refuse_subscriptions() {
  const std::scoped_lock lock(mutex_);
  refuses_ = true;
}

void FakePubSub::publish(const std::string& channel) {
  const std::scoped_lock lock(mutex_);
  if (!channels_.contains(channel)) return;
  pushes_.push_back({Push::Kind::message, channel});
  changed_.notify_all();
}

void FakePubSub::break_connection() {
  const std::scoped_lock lock(mutex_);
  connected_ = false;
  channels_.clear();
  pushes_.clear();
  changed_.notify_all();
}

int FakePubSub::connections() {
  const std::scoped_lock lock(mutex_);
  return connections_;
}

bool FakePubSub::is_subscribed(const std::string& channel) {
  const std::scoped_lock lock(mutex_);
  return channels_.contains(channel);
}

}  // namespace lockbench::redis
