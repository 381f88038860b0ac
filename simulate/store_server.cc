#include "simulate/store_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::simulate {
namespace {

constexpr const char* kGone = "the connection was closed";

}  // namespace

StoreServer::StoreServer(World& world, Network& network, std::string_view store, int its_number,
                         int its_region)
    : Server(its_number, its_region, fmt::format("{}-{}", store, its_number)),
      world_(world),
      network_(network) {}

void StoreServer::accept(const std::shared_ptr<Wire>& wire) {
  if (!alive_) return wire->refuse("connection refused");
  // The kernel of a frozen server's machine accepts.
  wire->session = open_session();
  wires_.push_back(wire);
  wire->accepted();
}

void StoreServer::arrive(const std::shared_ptr<Wire>& wire, std::string bytes) {
  // Its process is gone.
  if (wire->session == nullptr) return wire->refuse(kGone);
  if (take(wire, bytes)) schedule(wire);
}

void StoreServer::closed(const std::shared_ptr<Wire>& wire) {
  if (wire->session == nullptr) return;
  std::erase(wires_, wire);
  leave(wire);
  wire->session.reset();
}

void StoreServer::hang_up(const std::shared_ptr<Wire>& wire) {
  closed(wire);
  wire->refuse(kGone);
}

void StoreServer::schedule(const std::shared_ptr<Wire>& wire) {
  if (!frozen_ && busy_until_ <= world_.now() && ready_.empty()) return serve(wire);
  ready_.push_back(wire);
  if (ready_.size() == 1) await_turn();
}

void StoreServer::serve(const std::shared_ptr<Wire>& wire) {
  spend(per_request);
  work(wire);
}

/// Of the next connection that is ready; thaw() calls it for a frozen server.
void StoreServer::await_turn() {
  if (frozen_ || ready_.empty()) return;
  world_.at(busy_until_, [this, life = life_] {
    if (life != life_ || frozen_ || ready_.empty()) return;
    const std::shared_ptr<Wire> wire = std::move(ready_.front());
    ready_.pop_front();
    if (wire->session != nullptr) serve(wire);
    await_turn();
  });
}

void StoreServer::spend(Duration time) {
  busy_until_ = done_at() + time;
  worked_ += time;
}

void StoreServer::break_all() {
  ++life_;
  for (const auto& wire : wires_) {
    wire->session.reset();
    wire->refuse(kGone);
  }
  wires_.clear();
  ready_.clear();
}

void StoreServer::kill() {
  alive_ = frozen_ = false;
  break_all();
}

void StoreServer::restart_follower(std::size_t member) {
  for (const auto& wire : std::vector(wires_)) {
    if (wire->session->member == member) hang_up(wire);
  }
}

void StoreServer::cut_off(std::size_t member, Duration waits) {
  apart_ = member;
  if (member != 0) return;
  world_.at(world_.now() + waits, [this] {
    kill();
    world_.at(world_.now() + kElection, [this] { fail_over(); });
  });
}

void StoreServer::thaw() {
  if (!std::exchange(frozen_, false)) return;
  await_turn();
}

}  // namespace lockbench::simulate
