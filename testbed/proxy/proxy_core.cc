#include "testbed/proxy/proxy_core.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace lockbench::testbed {
namespace {

using asio::ip::tcp;
using std::chrono::nanoseconds;

void follow(const Rule& rule, WayFaults& faults) {
  if (const auto* delay = std::get_if<nanoseconds>(&rule.fault)) faults.delay = *delay;
  if (const auto* obstacle = std::get_if<Obstacle>(&rule.fault)) faults.obstacle = *obstacle;
}

void follow(const Rule& rule, ProxyWay& way) {
  if (const auto* delay = std::get_if<nanoseconds>(&rule.fault)) way.set_delay(*delay);
  if (const auto* obstacle = std::get_if<Obstacle>(&rule.fault)) way.set_obstacle(*obstacle);
}

}  // namespace

std::error_code ProxyCore::listen(std::uint16_t port) {
  const tcp::endpoint own(address_, port);
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
          // First, as a connection may fail to be admitted.
          core->accept();
          return core->admit(std::move(client));
        }
        // Most likely there are no free files: the client stays in the kernel's queue meanwhile.
        constexpr std::chrono::milliseconds kPause{10};
        core->pause_.expires_after(kPause);
        core->pause_.async_wait([core](const std::error_code&) {
          if (core->acceptor_.is_open()) core->accept();
        });
      });
}

void ProxyCore::admit(tcp::socket client) {
  const std::uint64_t number = ++shared_.counts.accepted;
  WayFaults to_server{.delay = delay_}, to_client{.delay = delay_};
  bool refused = false;
  for (const Rule& rule : rules_) {
    if (!rule.which.has(number)) continue;
    if (std::holds_alternative<Refusal>(rule.fault)) refused = true;
    if (rule.concerns(Direction::to_server)) follow(rule, to_server);
    if (rule.concerns(Direction::to_client)) follow(rule, to_client);
  }
  if (refused) {
    ++shared_.counts.refused;
    std::error_code ignored;
    client.set_option(tcp::socket::linger(true, 0), ignored);
    client.close(ignored);
    return;
  }
  const auto connection = std::make_shared<ProxyConnection>(
      std::move(client), shared_, to_server, to_client, [this, number] { open_.erase(number); });
  open_.emplace(number, connection);
  connection->start();
}

void ProxyCore::remember(const Rule& rule) {
  // A rule of the same kind for the same connections is replaced, so that the list stays short.
  std::erase_if(rules_, [&](const Rule& old) {
    return old.which == rule.which && old.direction == rule.direction &&
           old.fault.index() == rule.fault.index();
  });
  constexpr std::size_t kMostRules = 1000;
  if (rules_.size() >= kMostRules) throw std::length_error("too many different faults at once");
  rules_.push_back(rule);
}

void ProxyCore::apply(const Rule& rule) {
  if (rule.which.new_ones) remember(rule);
  if (!rule.which.open || std::holds_alternative<Refusal>(rule.fault)) return;
  for (const auto& connection : chosen(rule.which)) {
    if (rule.concerns(Direction::to_server)) follow(rule, connection->to_server());
    if (rule.concerns(Direction::to_client)) follow(rule, connection->to_client());
  }
}

std::error_code ProxyCore::vanish(const Connections& which) {
  apply({which, Direction::both, Obstacle::black_hole});
  if (!which.open) return {};
  for (const auto& connection : chosen(which)) {
    if (const std::error_code error = connection->drop_server_packets()) return error;
  }
  return {};
}

std::vector<std::shared_ptr<ProxyConnection>> ProxyCore::chosen(const Connections& which) const {
  std::vector<std::shared_ptr<ProxyConnection>> result;
  for (const auto& [number, connection] : open_) {
    if (which.has(number)) result.push_back(connection);
  }
  return result;
}

void ProxyCore::cut(const Connections& which) {
  if (!which.open) return;
  for (const auto& connection : chosen(which)) connection->abort();
}

void ProxyCore::heal() {
  rules_.clear();
  for (const auto& connection : chosen({})) connection->heal(delay_);
}

void ProxyCore::lead_to(std::uint16_t server) {
  shared_.server.port(server);
  cut({});
}

void ProxyCore::close() {
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  cut({});
}

}  // namespace lockbench::testbed
