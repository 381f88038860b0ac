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
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint&, const Timeouts&, Env&) override;

  /// Whether subscriptions are confirmed at once, or only by confirm().
  void confirm_at_once(bool at_once);
  void confirm(const std::string& channel);
  /// Each subscription breaks the connection, as one that is not allowed does.
  void refuse_subscriptions();
  void publish(const std::string& channel);
  void break_connection();

  int connections();
  bool is_subscribed(const std::string& channel);

 private:
  class Client;

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
