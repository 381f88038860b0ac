#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "simulate/redis/model.h"
#include "strategies/redis/client/connection.h"
#include "tests/support/sim_env.h"

namespace lockbench::redis {

/// A Redis server on a SimClock, and the factory of connections to it: the simulator's model of
/// Redis, with failures that a test places. For one thread; while no delay is set, its connections
/// may be on several.
class FakeRedis : public ConnectionFactory {
 public:
  enum class Failure {
    not_sent,      ///< the connection breaks before the command leaves
    request_lost,  ///< unanswered and without effect
    answer_lost,   ///< unanswered, but it took effect
    rejected,      ///< an error reply
  };

  explicit FakeRedis(SimClock& clock) : clock_(clock) {}

  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override;
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override;

  /// Makes the n-th command from now fail; 1 is the next.
  void fail(int n, Failure failure) { failures_[arrivals_ + n] = failure; }
  void refuse_connections(bool refuse) { refuses_ = refuse; }
  /// A new connection takes this long.
  void set_connect_time(Duration time) { connect_time_ = time; }
  /// Commands and answers each travel for half of it.
  void set_round_trip(Duration round_trip) { round_trip_ = round_trip; }
  /// Each answer can be read only this long after its command arrived.
  void set_answer_delay(Duration delay) { answer_delay_ = delay; }
  /// Called for each arriving command, before it takes effect: to play the other party of a race.
  void on_arrival(std::function<void(const std::string&)> action) {
    on_arrival_ = std::move(action);
  }
  /// As a restart of the server does.
  void forget_scripts() { data_.forget_scripts(); }

  /// The commands since the last call, one line each; scripts by their names.
  std::vector<std::string> take_commands();

  std::optional<std::string> value(const std::string& key);
  /// Nothing if the key does not exist or does not expire.
  std::optional<Duration> ttl(const std::string& key);
  void set(const std::string& key, std::string value, std::optional<Duration> ttl = {});
  void erase(const std::string& key) { (void)ask({"DEL", key}); }
  std::size_t keys() const { return data_.keys(); }

 private:
  friend class FakeRedisConnection;
  using Words = std::vector<std::string>;

  using Session = simulate::RedisModel::Session;

  StoreResult<Reply> arrive(const Words& command, Session& session);
  Reply execute(const Words& command, Session& session);
  Reply ask(const Words& command);

  SimClock& clock_;
  std::recursive_mutex mutex_;  ///< recursive: a command may cause another one while it takes
                                ///< effect
  simulate::RedisModel data_;
  int arrivals_ = 0;
  std::map<int, Failure> failures_;
  std::vector<std::string> commands_;
  std::function<void(const std::string&)> on_arrival_;
  Duration round_trip_{}, answer_delay_{}, connect_time_{};
  bool refuses_ = false;
};

}  // namespace lockbench::redis
