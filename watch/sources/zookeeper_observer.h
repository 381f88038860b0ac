#pragma once

#include <deque>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/zookeeper/client/endpoint.h"
#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"

namespace lockbench::watch {

/// A session for reading and watching, which owns nothing that would end with it. For one thread,
/// which must call events() often, as that keeps it alive. After a failure it is closed, with all
/// watches, until connect() begins another. Reports each request to its Env.
class ZookeeperObserver {
 public:
  ZookeeperObserver(zookeeper::Endpoint endpoint, Duration command_timeout, Env& env);
  ZookeeperObserver(const ZookeeperObserver&) = delete;
  ZookeeperObserver& operator=(const ZookeeperObserver&) = delete;
  ~ZookeeperObserver() { close(); }

  /// Does nothing if there is a session.
  StoreResult<void> connect(const std::stop_token& stop);

  /// The reply is there if the code is `ok`, or one of the refusals that it has a kind for.
  using Answer = zookeeper::Batch::Answer;
  /// Pipelines the requests, which must change nothing, and waits for the answers.
  StoreResult<std::vector<Answer>> call(std::span<const zookeeper::Request> requests,
                                        const std::stop_token& stop);
  /// The nodes of which something has changed; waits for at most `longest` for the first.
  StoreResult<std::vector<std::string>> events(Duration longest, const std::stop_token& stop);
  void close();

 private:
  struct Pending {
    std::int32_t xid = 0;
    const zookeeper::Request* request = nullptr;
    Answer* answer = nullptr;
  };

  StoreResult<void> greet_server(const std::stop_token& stop);
  /// Takes what comes within `longest`.
  StoreResult<void> receive(Duration longest, const std::stop_token& stop);
  /// What is wrong with a packet; empty if it is right.
  std::string take(std::string_view packet);
  tl::unexpected<StoreError> broken(std::string_view why);

  const zookeeper::Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  zookeeper::Link link_;
  bool connected_ = false;
  Duration granted_{};  ///< the session's timeout
  TimePoint heard_at_{}, pinged_at_{};
  std::int32_t next_xid_ = 1;
  std::deque<Pending> pending_;
  std::vector<std::string> events_;
};

}  // namespace lockbench::watch
