#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/listener.h"

namespace lockbench::test {

/// The honest server's side of one connection. Used on the server's thread.
class Speaker {
 public:
  virtual ~Speaker() = default;
  /// What the server sends before the first request.
  virtual std::string opening() { return {}; }
  /// The length of the first request in these bytes; 0 until it is complete.
  virtual std::size_t request_length(std::string_view received) = 0;
  /// The right answer; empty: none.
  virtual std::string answer(std::string_view request) = 0;
  /// Whether the request belongs to connecting and logging in: it is not counted and always
  /// answered correctly.
  virtual bool is_prelude(std::string_view /*request*/) const { return false; }
  /// A wrong answer, addressed as the right one is.
  virtual std::string addressed(std::string bytes, std::string_view /*request*/) const {
    return bytes;
  }
};
using MakeSpeaker = std::function<std::unique_ptr<Speaker>()>;

/// The server's reaction instead of the right answer.
struct Misdeed {
  enum class Kind {
    none,
    answer,             ///< sends `bytes`
    flood,              ///< repeats `bytes`, 64 MiB in all
    silence,            ///< sends nothing more on this connection
    half_then_silence,  ///< half of the right answer
    reset,              ///< RST
    half_then_reset,
  };
  Kind kind = Kind::none;
  std::string bytes{};

  /// Printable, for test messages.
  std::string name() const;
};

/// One misdeed for each of these answers and floods, and one of each other kind.
std::vector<Misdeed> misdeeds(const std::vector<std::string>& answers,
                              const std::vector<std::string>& floods);

/// A server on a free port of 127.0.0.1, with its own thread, that answers correctly except for
/// some requests. Thread-safe.
class HostileServer {
 public:
  struct Plan {
    Misdeed misdeed{};
    int at = 1;         ///< number of the request to misanswer, from 1; the prelude does not count
    bool ever = false;  ///< and all later ones
  };
  struct Exchange {
    std::string request;
    std::string sent;  ///< of a flood: `bytes` twice
  };

  HostileServer(MakeSpeaker make_speaker, Plan plan);
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;
  ~HostileServer();

  int port() const { return listener_.port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  /// The counted requests so far, on all connections, with the bytes sent for each.
  std::vector<Exchange> exchanges() const;

 private:
  struct Peer;

  void serve();
  void receive(Peer& peer);
  void treat(Peer& peer, std::string_view request);
  void strike(Peer& peer, std::string_view request, const std::string& right,
              std::string& sent) const;

  const MakeSpeaker make_speaker_;
  const Plan plan_;
  const Listener listener_{SOMAXCONN};
  const int end_;
  int requests_ = 0;
  mutable std::mutex mutex_;
  std::vector<Exchange> exchanges_;
  std::thread thread_;
};

/// Calls work(0) to work(count - 1), `at_once` of them in parallel.
void side_by_side(std::size_t count, std::size_t at_once,
                  const std::function<void(std::size_t)>& work);

/// Plays each misdeed at each of the first `requests` requests, and once at all from `on_from` on;
/// many in parallel.
void play_all(const std::vector<Misdeed>& misdeeds, int requests,
              const std::function<void(const HostileServer::Plan&)>& play, int on_from = 1);

}  // namespace lockbench::test
