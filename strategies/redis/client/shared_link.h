#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/transport/socket.h"

namespace lockbench::redis {

/// Connects to an endpoint's server, as connect_server() does.
using Dial = std::function<tl::expected<std::unique_ptr<Transport>, std::string>(
    const Endpoint& endpoint, const Timeouts& timeouts, const std::stop_token& stop)>;

/// One client of a shared link. Both calls only take note: they must not wait.
class LinkUser {
 public:
  /// The answer to its oldest command on the link, or why there is none; an error reply is of kind
  /// `rejected`. `connection`: the number of the connection that carried it.
  virtual void answered(StoreResult<Reply> reply, std::uint64_t connection) = 0;
  /// An attempt to connect that it waited for is over.
  virtual void attempt_over() = 0;

 protected:
  ~LinkUser() = default;
};

/// A pipelined connection to one server, with many users on one generator thread. One fiber sends
/// what all users have queued meanwhile in one piece, another one reads the answers and hands them
/// out in order. Without a connection the sender makes one, within `timeouts`; if it breaks, all
/// commands under way are answered with that. Used by fibers of the thread that made it; may be
/// destroyed on any thread once all users have left and `over` has been stopped.
class SharedLink {
 public:
  SharedLink(Endpoint endpoint, const Timeouts& timeouts, Dial dial, std::stop_token over);
  SharedLink(const SharedLink&) = delete;
  SharedLink& operator=(const SharedLink&) = delete;
  ~SharedLink() = default;

  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& display() const { return display_; }
  const Timeouts& timeouts() const { return timeouts_; }

  /// Whole commands, which nobody else's come between. Each gets one answered(), which can come
  /// within this call.
  void send(LinkUser& user, std::string_view bytes, std::size_t commands);
  /// Begins to connect unless that is under way. Returns the number of the attempt: once attempts()
  /// is greater, connected() and why_not() tell its result.
  std::uint64_t connect(LinkUser& user);
  std::uint64_t attempts() const { return attempts_; }
  bool connected() const { return live_ != nullptr; }
  const StoreError& why_not() const { return why_not_; }
  /// Grows with every new connection.
  std::uint64_t times_connected() const { return times_connected_; }
  /// When the server last sent something.
  TimePoint heard_at() const { return heard_at_; }

  StoreError error(StoreError::Kind kind, std::string_view why) const {
    return error_at(display_, kind, why);
  }

  /// Fails what is under way, of all users; the next command makes a new connection.
  void break_connection(std::string_view why);
  /// Drops the answer to the user's oldest command, which comes too late.
  void forget_oldest(const LinkUser& user);
  /// The user goes: nothing is handed to it any more.
  void leave(LinkUser& user);

 private:
  /// A connection that works. Kept by the fibers that wait for it, also when it is broken.
  struct Live {
    struct Cut {
      std::stop_source& source;
      void operator()() const noexcept { source.request_stop(); }
    };

    Live(std::unique_ptr<Transport> on, ReplyReader with, const std::stop_token& over)
        : transport(std::move(on)), reader(std::move(with)), on_over(over, Cut{cut}) {}

    std::unique_ptr<Transport> transport;
    ReplyReader reader;
    std::stop_source cut;  ///< ends the reader's wait when the connection is broken
    std::stop_callback<Cut> on_over;
  };

  void start_fibers();
  /// The bodies of the two fibers.
  void send_queued();
  void read_answers();
  void connect_now();
  void end_attempt();
  void hand_out(const std::shared_ptr<Live>& live);
  void fiber_failed(const std::string& why);
  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  const Dial dial_;
  const std::stop_token over_;

  std::shared_ptr<Live> live_;  ///< null: not connected
  std::uint64_t times_connected_ = 0, attempts_ = 0;
  StoreError why_not_;
  std::vector<LinkUser*> connecting_;  ///< wait for the attempt
  bool wanted_ = false;                ///< a connection, though nothing is to be sent
  std::string out_;                    ///< not sent yet
  std::string sending_;
  /// Users of the commands without an answer, oldest first; null: nobody waits any more. The first
  /// `sent_` of them may have reached the server.
  std::deque<LinkUser*> awaiting_;
  std::size_t sent_ = 0;
  TimePoint heard_at_ = TimePoint::min();
  std::string dead_;  ///< why a fiber is missing; empty: both run

  std::unique_ptr<Event> to_send_, to_read_;
  std::unique_ptr<Task> sender_, reader_;  ///< last: they use the rest
};

}  // namespace lockbench::redis
