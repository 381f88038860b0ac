#include "testbed/proxy/proxy.h"

#include <fmt/format.h>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/use_future.hpp>
#include <cmath>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "testbed/proxy/proxy_core.h"

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
  ProxyLoop(const ProxyLoop&) = delete;
  ProxyLoop& operator=(const ProxyLoop&) = delete;
  /// All proxies are closed: only cancelled operations are left to run.
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
  /// What throws in a connection's handler, for lack of memory, costs that connection only: its
  /// client sees no answer.
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

tl::expected<std::unique_ptr<ProxyPool>, std::string> ProxyPool::start() {
  try {
    return std::unique_ptr<ProxyPool>(new ProxyPool(std::make_shared<ProxyLoop>()));
  } catch (const std::system_error& error) {
    return tl::unexpected(fmt::format("the proxies' thread: {}", error.what()));
  }
}

tl::expected<std::unique_ptr<Proxy>, std::string> start_proxy(ProxyPool& pool, std::uint16_t server,
                                                              const ProxyOptions& options) {
  using Started = tl::expected<std::unique_ptr<Proxy>, std::string>;
  ProxyLoop& loop = *pool.loop_;
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), server);
  return start_on_free_port<Proxy>(options.choose_port, [&](std::uint16_t port) -> Started {
    const auto core = std::make_shared<ProxyCore>(loop.io, loop.scratch, endpoint, options);
    const std::error_code error = loop.call([&] { return core->listen(port); });
    if (error) {
      return tl::unexpected(fmt::format("a proxy on port {}: {}", port, error.message()));
    }
    return std::unique_ptr<Proxy>(new Proxy(pool.loop_, core, port));
  });
}

Proxy::Proxy(std::shared_ptr<ProxyLoop> loop, std::shared_ptr<ProxyCore> core, std::uint16_t port)
    : loop_(std::move(loop)), core_(std::move(core)), port_(port) {}

Proxy::~Proxy() {
  loop_->call([this] { core_->close(); });
}

void Proxy::delay(nanoseconds each_way, Direction direction, const Connections& which) {
  loop_->call([&] { core_->apply({which, direction, each_way}); });
}

void Proxy::black_hole(Direction direction, const Connections& which) {
  loop_->call([&] { core_->apply({which, direction, Obstacle::black_hole}); });
}

tl::expected<void, std::string> Proxy::vanish(const Connections& which) {
  const std::error_code error = loop_->call([&] { return core_->vanish(which); });
  if (error) return tl::unexpected("to drop what comes from a server: " + error.message());
  return {};
}

void Proxy::hold(Direction direction, const Connections& which) {
  loop_->call([&] { core_->apply({which, direction, Obstacle::hold}); });
}

void Proxy::cut(const Connections& which) {
  loop_->call([&] { core_->cut(which); });
}

void Proxy::refuse(const Connections& which) {
  loop_->call([&] { core_->apply({which, Direction::both, Refusal{}}); });
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
