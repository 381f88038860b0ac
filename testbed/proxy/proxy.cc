#include "testbed/proxy/proxy.h"

#include <fmt/format.h>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/use_future.hpp>
#include <cmath>
#include <exception>
#include <map>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "testbed/proxy/proxy_connection.h"
#include "testbed/servers/ports.h"

namespace lockbench::testbed {

using asio::ip::tcp;
using std::chrono::nanoseconds;

bool Connections::has(std::uint64_t connection) const {
  if (number != 0 && connection != number) return false;
  const auto chosen_up_to = [&](std::uint64_t n) {
    return std::floor(static_cast<double>(n) * share);
  };
  return chosen_up_to(connection) > chosen_up_to(connection - 1);
}

class ProxyLoop {
 public:
  ProxyLoop() : thread_([this] { run(); }) {}
  /// All proxies are closed by now: only cancelled operations are left to run.
  ~ProxyLoop() {
    work_.reset();
    thread_.join();
  }

  /// Runs it on the loop's thread and waits for its result.
  template <typename Function>
  auto call(Function function) {
    return asio::post(io, asio::use_future(std::move(function))).get();
  }

  static constexpr std::size_t kReadSize = std::size_t{64} << 10;
  asio::io_context io{1};
  std::vector<char> scratch = std::vector<char>(kReadSize);

 private:
  /// An exception in a connection's handler, for lack of memory, costs only that connection: its
  /// client gets no answer.
  void run() {
    while (true) {
      try {
        io.run();
        return;
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io);
  std::thread thread_;
};

/// One proxy. Used on its loop's thread only.
class ProxyCore : public std::enable_shared_from_this<ProxyCore> {
 public:
  /// `scratch`: the read buffer that all proxies of a loop share.
  ProxyCore(asio::io_context& io, std::vector<char>& scratch, const tcp::endpoint& server,
            const ProxyOptions& options)
      : shared_{io, scratch, server},
        delay_(options.delay),
        address_(asio::ip::make_address_v4(options.address)),
        acceptor_(io),
        pause_(io) {}

  std::error_code listen(std::uint16_t port) {
    const tcp::endpoint own(address_, port);
    std::error_code error;
    acceptor_.open(own.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(own, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) accept();
    return error;
  }

  void apply(const Fault& fault, const Connections& which) {
    if (which.new_ones) remember({which, fault});
    if (!which.open) return;
    for (const auto& connection : chosen(which)) connection->strike(fault);
  }

  std::error_code vanish() {
    apply(Obstacle::black_hole, {});
    for (const auto& connection : chosen({})) {
      if (const std::error_code error = connection->drop_server_packets()) return error;
    }
    return {};
  }

  void cut() {
    for (const auto& connection : chosen({})) connection->abort();
  }

  void heal() {
    rules_.clear();
    for (const auto& connection : chosen({})) connection->heal(delay_);
  }

  void lead_to(std::uint16_t server) {
    shared_.server.port(server);
    cut();
  }

  void close() {
    std::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    cut();
  }

  ProxyCounts counts() const {
    ProxyCounts counts = shared_.counts;
    counts.open = open_.size();
    return counts;
  }

 private:
  struct Rule {
    Connections which;
    Fault fault;
  };

  void accept() {
    acceptor_.async_accept(
        [core = shared_from_this()](const std::error_code& error, tcp::socket client) {
          if (!core->acceptor_.is_open()) return;
          if (!error) {
            // First, as admitting a connection may fail.
            core->accept();
            return core->admit(std::move(client));
          }
          // Most likely too many open files: the client stays in the kernel's queue meanwhile.
          constexpr std::chrono::milliseconds kPause{10};
          core->pause_.expires_after(kPause);
          core->pause_.async_wait([core](const std::error_code&) {
            if (core->acceptor_.is_open()) core->accept();
          });
        });
  }

  void admit(tcp::socket client) {
    const std::uint64_t number = ++shared_.counts.accepted;
    Faults faults{.delay = delay_};
    for (const Rule& rule : rules_) {
      if (rule.which.has(number)) faults.add(rule.fault);
    }
    const auto connection = std::make_shared<ProxyConnection>(
        std::move(client), shared_, faults, [this, number] { open_.erase(number); });
    open_.emplace(number, connection);
    connection->start();
  }

  void remember(const Rule& rule) {
    // Replaces a rule of the same kind for the same connections, so that the list stays short.
    std::erase_if(rules_, [&](const Rule& old) {
      return old.which == rule.which && old.fault.index() == rule.fault.index();
    });
    constexpr std::size_t kMostRules = 1000;
    if (rules_.size() >= kMostRules) throw std::length_error("too many different faults at once");
    rules_.push_back(rule);
  }

  /// A copy of open_, as closing a connection removes it from there.
  std::vector<std::shared_ptr<ProxyConnection>> chosen(const Connections& which) const {
    std::vector<std::shared_ptr<ProxyConnection>> result;
    for (const auto& [number, connection] : open_) {
      if (which.has(number)) result.push_back(connection);
    }
    return result;
  }

  ProxyShared shared_;
  const nanoseconds delay_;
  const asio::ip::address_v4 address_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::vector<Rule> rules_;  // for connections to come, the oldest first
  std::map<std::uint64_t, std::shared_ptr<ProxyConnection>> open_;
};

tl::expected<std::unique_ptr<ProxyPool>, std::string> ProxyPool::start() {
  try {
    auto pool = std::make_unique<ProxyPool>();
    pool->loop = std::make_shared<ProxyLoop>();
    return pool;
  } catch (const std::system_error& error) {
    return tl::unexpected(fmt::format("the proxies' thread: {}", error.what()));
  }
}

tl::expected<std::unique_ptr<Proxy>, std::string> start_proxy(ProxyPool& pool, std::uint16_t server,
                                                              const ProxyOptions& options) {
  ProxyLoop& loop = *pool.loop;
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), server);
  const auto start = [&](std::uint16_t port) {
    const auto core = std::make_shared<ProxyCore>(loop.io, loop.scratch, endpoint, options);
    const std::error_code error = loop.call([&] { return core->listen(port); });
    if (error) throw Failure(fmt::format("a proxy on port {}: {}", port, error.message()));
    return std::make_unique<Proxy>(pool.loop, core, port);
  };
  if (options.port != 0) return attempt([&] { return start(options.port); });
  return start_on_free_port<Proxy>(free_loopback_port, start);
}

Proxy::~Proxy() {
  loop_->call([this] { core_->close(); });
}

void Proxy::delay(nanoseconds each_way, const Connections& which) {
  loop_->call([&] { core_->apply(each_way, which); });
}

void Proxy::black_hole(const Connections& which) {
  loop_->call([&] { core_->apply(Obstacle::black_hole, which); });
}

tl::expected<void, std::string> Proxy::vanish() {
  const std::error_code error = loop_->call([&] { return core_->vanish(); });
  if (error) return tl::unexpected("cannot drop a server's packets: " + error.message());
  return {};
}

void Proxy::hold(const Connections& which) {
  loop_->call([&] { core_->apply(Obstacle::hold, which); });
}

void Proxy::cut() {
  loop_->call([&] { core_->cut(); });
}

void Proxy::heal() {
  loop_->call([&] { core_->heal(); });
}

void Proxy::lead_to(std::uint16_t server) {
  loop_->call([&] { core_->lead_to(server); });
}

ProxyCounts Proxy::counts() const {
  return loop_->call([this] { return core_->counts(); });
}

}  // namespace lockbench::testbed
