#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/zookeeper/client/link.h"
#include "tests/support/sim_env.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::zookeeper {

/// Servers that share sessions and nodes, on simulated time. Answers come at once, unless a test
/// says otherwise.
class FakeEnsemble {
 public:
  explicit FakeEnsemble(SimClock& clock) : clock_(clock) {}

  struct Server {
    bool listens = true, answers = true;
    int greeted = 0;
  };
  struct Session {
    Duration timeout{};
    std::string password;
    bool over = false;
  };
  struct Said {
    std::int32_t xid = 0, operation = 0;
    std::string body;
  };

  Connector connector();
  Server& server(const std::string& host) { return servers_[host]; }
  /// The server of the latest connection.
  const std::string& host() const { return host_; }

  /// Every server gives this instead of what is asked for.
  void grant(Duration timeout) { granted_ = timeout; }
  const Session& session(std::int64_t id) { return sessions_.at(id); }

  /// All requests but greetings, on all connections.
  const std::vector<Said>& said() const { return said_; }
  int count(std::int32_t operation) const;

  /// How often anybody has begun to wait for one of them.
  int waits() const { return waits_; }

  /// Bytes on the latest connection, in a frame or as they are.
  void push(const std::string& packet);
  void push_raw(const std::string& bytes);
  void push_event(std::int32_t type, const std::string& path);
  void cut();

  static constexpr std::int32_t kPing = 11, kAuth = 100, kSetWatches = 101, kClose = -11;
  static constexpr std::int32_t kDeleted = 2, kChanged = 3;

  /// Not for tests.
  struct Wire {
    std::string host;
    std::string sent;   ///< by the client, not dealt with
    std::string inbox;  ///< for the client
    bool open = true;
    std::int64_t session = 0;  ///< 0: not greeted
  };
  void serve(Wire& wire);
  void begin_wait() { ++waits_; }
  SimClock& clock() { return clock_; }

 private:
  void greet(Wire& wire, const std::string& packet);
  void answer(Wire& wire, const Said& said);

  SimClock& clock_;
  std::map<std::string, Server> servers_;
  std::map<std::int64_t, Session> sessions_;
  std::vector<Said> said_;
  std::shared_ptr<Wire> latest_;
  std::string host_;
  Duration granted_{};
  std::int64_t transactions_ = 100;
  int sequence_ = 0, waits_ = 0;
};

using test::jute::number;

}  // namespace lockbench::zookeeper
