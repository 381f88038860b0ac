#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// A server that only passes messages on, in memory and in real time, and the factory of the
/// subscribers to it. Serves one connection at a time. Thread-safe.
class FakePubSub : public ConnectionFactory {
 public:
  std::unique_ptr<Connection> make(const Endpoint&, const Timeouts&, Env&) override {
    return nullptr;
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint&, const Timeouts&, Env&) override {
    return std::make_unique<Client>(*this);
  }

  /// Whether subscriptions are confirmed at once, or only by confirm().
  void confirm_at_once(bool at_once) {
    const std::scoped_lock lock(mutex_);
    confirms_ = at_once;
  }
  void confirm(const std::string& channel) {
    const std::scoped_lock lock(mutex_);
    push({Push::Kind::subscribed, channel});
  }
  /// Each subscription breaks the connection, as one that is not allowed does.
  void refuse_subscriptions() {
    const std::scoped_lock lock(mutex_);
    refuses_ = true;
  }
  void publish(const std::string& channel) {
    const std::scoped_lock lock(mutex_);
    if (channels_.contains(channel)) push({Push::Kind::message, channel});
  }
  void break_connection() {
    const std::scoped_lock lock(mutex_);
    connected_ = false;
    channels_.clear();
    pushes_.clear();
    changed_.notify_all();
  }

  int connections() {
    const std::scoped_lock lock(mutex_);
    return connections_;
  }
  bool is_subscribed(const std::string& channel) {
    const std::scoped_lock lock(mutex_);
    return channels_.contains(channel);
  }

 private:
  class Client : public Subscriber {
   public:
    explicit Client(FakePubSub& server) : server_(server) {}

    StoreResult<void> connect(const std::stop_token&) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) ++server_.connections_;
      server_.connected_ = true;
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
      if (server_.confirms_) server_.push({Push::Kind::subscribed, channel});
      return {};
    }

    StoreResult<void> unsubscribe(const std::string& channel) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) return gone();
      server_.channels_.erase(channel);
      server_.push({Push::Kind::unsubscribed, channel});
      return {};
    }

    StoreResult<std::optional<Push>> receive(Duration longest,
                                             const std::stop_token& stop) override {
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

    FakePubSub& server_;
  };

  void push(Push push) {
    pushes_.push_back(std::move(push));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool connected_ = false;
  bool confirms_ = true;
  bool refuses_ = false;
  int connections_ = 0;
  std::set<std::string> channels_;
  std::deque<Push> pushes_;
};

}  // namespace lockbench::redis
