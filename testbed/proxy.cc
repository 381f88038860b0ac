#include "testbed/proxy.h"

#include <fmt/format.h>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/use_future.hpp>
#include <cmath>
#include <map>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "testbed/proxy_connection.h"

namespace lockbench::testbed {
namespace {

using asio::ip::tcp;
using std::chrono::nanoseconds;

struct Refusal {
  bool operator==(const Refusal&) const = default;
};

/// What is to happen to some connections.
struct Rule {
  Connections which;
  Direction direction = Direction::both;
  std::variant<nanoseconds, Obstacle, Refusal> fault;

  bool concerns(Direction one_way) const {
    return direction == Direction::both || direction == one_way;
  }
};

/// What the rules say of a new connection.
struct Reception {
  Line to_server, to_client;
  bool refused = false;

  void follow(const Rule& rule) {
    if (std::holds_alternative<Refusal>(rule.fault)) refused = true;
    if (rule.concerns(Direction::to_server)) follow(rule, to_server);
    if (rule.concerns(Direction::to_client)) follow(rule, to_client);
  }

 private:
  static void follow(const Rule& rule, Line& line) {
    if (const auto* delay = std::get_if<nanoseconds>(&rule.fault)) line.delay = *delay;
    if (const auto* obstacle = std::get_if<Obstacle>(&rule.fault)) line.obstacle = *obstacle;
  }
};

void follow(const Rule& rule, ProxyWay& way) {
  if (const auto* delay = std::get_if<nanoseconds>(&rule.fault)) way.set_delay(*delay);
  if (const auto* obstacle = std::get_if<Obstacle>(&rule.fault)) way.set_obstacle(*obstacle);
}

}  // namespace

Connections Connections::open_now() {
  Connections result;
  result.coming_ = false;
  return result;
}

Connections Connections::from_now_on() {
  Connections result;
  result.open_ = false;
  return result;
}

Connections Connections::number(std::uint64_t n) {
  Connections result;
  result.number_ = n;
  return result;
}

Connections Connections::share(double part) const {
  Connections result = *this;
  result.share_ = part;
  return result;
}

bool Connections::has(std::uint64_t number) const {
  if (number_ != 0 && number != number_) return false;
  const auto chosen_up_to = [&](std::uint64_t n) {
    return std::floor(static_cast<double>(n) * share_);
  };
  return chosen_up_to(number) > chosen_up_to(number - 1);
}

class ProxyLoop {
 public:
  ProxyLoop() : thread_([this] { io.run(); }) {}
  ProxyLoop(const ProxyLoop&) = delete;
  ProxyLoop& operator=(const ProxyLoop&) = delete;
  /// All proxies are closed: what is left to run are operations that have been called off.
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
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io);
  std::thread thread_;
};

/// One proxy, as its loop's thread knows it.
class ProxyCore : public std::enable_shared_from_this<ProxyCore> {
 public:
  ProxyCore(ProxyLoop& loop, tcp::endpoint server, const ProxyOptions& options)
      : shared_{loop.io, loop.scratch, std::move(server), options.buffer_bytes},
        delay_(options.delay),
        acceptor_(loop.io),
        pause_(loop.io) {}

  std::error_code listen(std::uint16_t port);
  void apply(const Rule& rule);
  void cut(const Connections& which);
  void heal();
  void close();
  ProxyCounts counts() const {
    ProxyCounts counts = shared_.counts;
    counts.open = open_.size();
    return counts;
  }

 private:
  void accept();
  void admit(tcp::socket client);
  void remember(const Rule& rule);
  /// Those open now; whatever is done to one may take it out of open_.
  std::vector<std::shared_ptr<ProxyConnection>> chosen(const Connections& which) const;

  ProxyShared shared_;
  const nanoseconds delay_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::vector<Rule> rules_;  // for connections to come, the oldest first
  std::map<std::uint64_t, std::shared_ptr<ProxyConnection>> open_;
};

std::error_code ProxyCore::listen(std::uint16_t port) {
  const tcp::endpoint own(asio::ip::address_v4::loopback(), port);
  std::error_code error;
  acceptor_.open(own.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(own, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) accept();
  return error;
}

void ProxyCore::accept() {
  acceptor_.async_accept(
      [core = shared_from_this()](const std::error_code& error, tcp::socket client) {
        if (!core->acceptor_.is_open()) return;
        if (!error) {
          core->admit(std::move(client));
          return core->accept();
        }
        // Out of files, most likely: the client stays in the kernel's queue meanwhile.
        constexpr std::chrono::milliseconds kPause{10};
        core->pause_.expires_after(kPause);
        core->pause_.async_wait([core](const std::error_code&) {
          if (core->acceptor_.is_open()) core->accept();
        });
      });
}

void ProxyCore::admit(tcp::socket client) {
  const std::uint64_t number = ++shared_.counts.accepted;
  Reception reception{.to_server = {.delay = delay_}, .to_client = {.delay = delay_}};
  for (const Rule& rule : rules_) {
    if (rule.which.has(number)) reception.follow(rule);
  }
  if (reception.refused) {
    ++shared_.counts.refused;
    std::error_code ignored;
    client.set_option(tcp::socket::linger(true, 0), ignored);
    client.close(ignored);
    return;
  }
  const auto connection = std::make_shared<ProxyConnection>(
      std::move(client), shared_, reception.to_server, reception.to_client,
      [this, number] { open_.erase(number); });
  open_.emplace(number, connection);
  connection->start();
}

void ProxyCore::remember(const Rule& rule) {
  // What says the same of the same connections is replaced, so that a fault may come and go often.
  std::erase_if(rules_, [&](const Rule& old) {
    return old.which == rule.which && old.direction == rule.direction &&
           old.fault.index() == rule.fault.index();
  });
  constexpr std::size_t kMostRules = 1000;
  if (rules_.size() >= kMostRules) throw std::length_error("too many different faults at once");
  rules_.push_back(rule);
}

void ProxyCore::apply(const Rule& rule) {
  if (rule.which.concerns_coming()) remember(rule);
  if (!rule.which.concerns_open() || std::holds_alternative<Refusal>(rule.fault)) return;
  for (const auto& connection : chosen(rule.which)) {
    if (rule.concerns(Direction::to_server)) follow(rule, connection->to_server());
    if (rule.concerns(Direction::to_client)) follow(rule, connection->to_client());
  }
}

std::vector<std::shared_ptr<ProxyConnection>> ProxyCore::chosen(const Connections& which) const {
  std::vector<std::shared_ptr<ProxyConnection>> result;
  for (const auto& [number, connection] : open_) {
    if (which.has(number)) result.push_back(connection);
  }
  return result;
}

void ProxyCore::cut(const Connections& which) {
  if (!which.concerns_open()) return;
  for (const auto& connection : chosen(which)) connection->abort();
}

void ProxyCore::heal() {
  rules_.clear();
  for (const auto& connection : chosen(Connections::all())) connection->heal(delay_);
}

void ProxyCore::close() {
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  cut(Connections::all());
}

class ProxyStarter {
 public:
  static tl::expected<std::unique_ptr<Proxy>, std::string> start(const ProxyPool& pool,
                                                                 const tcp::endpoint& server,
                                                                 const ProxyOptions& options,
                                                                 std::uint16_t port) {
    const auto core = std::make_shared<ProxyCore>(*pool.loop_, server, options);
    const std::error_code error = pool.loop_->call([&] { return core->listen(port); });
    if (error) {
      return tl::unexpected(fmt::format("a proxy on port {}: {}", port, error.message()));
    }
    return std::unique_ptr<Proxy>(new Proxy(pool.loop_, core, port));
  }
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
  std::error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error) {
    return tl::unexpected(fmt::format("{}: not an address: {}", options.host, error.message()));
  }
  const tcp::endpoint endpoint(address, server);
  return start_on_free_port<Proxy>(options.choose_port, [&](std::uint16_t port) {
    return ProxyStarter::start(pool, endpoint, options, port);
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

ProxyCounts Proxy::counts() const {
  return loop_->call([this] { return core_->counts(); });
}

}  // namespace lockbench::testbed
