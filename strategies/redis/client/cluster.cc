#include "strategies/redis/client/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "strategies/number.h"
#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

/// How often one command is sent again.
constexpr int kMostRedirects = 5;
/// A cluster has at most about a thousand primaries; these bounds are against a broken server.
constexpr std::size_t kMostServers = 1024, kMostAsked = 8;
/// The first pause after TRYAGAIN, which lasts while a slot moves; each is twice as long.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(20);

std::optional<HostPort> address_of(std::string_view host, std::int64_t port,
                                   const HostPort& asked) {
  if (port < 1 || port > 65535) return std::nullopt;
  const bool bad = std::ranges::any_of(host, [](unsigned char c) { return c <= ' ' || c > '~'; });
  if (bad) return std::nullopt;
  return HostPort{.host = host.empty() ? asked.host : std::string(host),
                  .port = static_cast<std::uint16_t>(port)};
}

Endpoint server_at(const Endpoint& cluster, const HostPort& address) {
  Endpoint server = cluster;
  server.cluster.clear();
  server.sharded = true;
  server.host = address.host;
  server.port = address.port;
  return server;
}

/// Asks these servers for the slots, one after the other, each on a new connection.
StoreResult<SlotMap> learn_slots(const MakeConnection& make, const Endpoint& cluster,
                                 const std::vector<HostPort>& servers, const Timeouts& timeouts,
                                 Env& env, const std::stop_token& stop) {
  StoreError last{StoreError::Kind::not_sent, "none is known"};
  // A server that hangs must not use up the time of the others.
  const Duration share =
      timeouts.answer / static_cast<int>(std::max<std::size_t>(servers.size(), 1));
  for (const HostPort& server : servers) {
    const auto connection = make(server_at(cluster, server), {share, timeouts.after_stop}, env);
    const auto reply = connection->call({"CLUSTER", "SLOTS"}, stop);
    if (!reply) {
      last = reply.error();
      continue;
    }
    if (auto map = SlotMap::read(*reply, server)) return *std::move(map);
    last = {StoreError::Kind::not_sent,
            fmt::format("{}: {}", server.display(),
                        describe_answer("CLUSTER SLOTS", *reply, "the slots of a cluster"))};
  }
  const bool rejected = last.kind == StoreError::Kind::rejected;
  return failure_at(cluster.display(),
                    rejected ? StoreError::Kind::rejected : StoreError::Kind::not_sent,
                    "no server shows the cluster's slots; " + last.message, last.code);
}

class ClusterConnection : public Connection {
 public:
  ClusterConnection(MakeConnection make, const Endpoint& cluster, const Timeouts& timeouts,
                    Env& env)
      : make_(std::move(make)),
        cluster_(cluster),
        display_(cluster.display()),
        timeouts_(timeouts),
        env_(env) {}

  const std::string& display() const override { return display_; }

  StoreResult<void> connect(const std::stop_token& stop) override {
    return map_ ? StoreResult<void>() : learn({}, stop);
  }
  // Only the nodes of a quorum, which are no clusters, are used without waiting.
  StoreResult<bool> connect_within(Duration /*longest*/, const std::stop_token& stop) override {
    return connect(stop).map([] { return true; });
  }
  std::optional<StoreResult<Reply>> receive_within(Duration /*longest*/,
                                                   const std::stop_token& stop) override {
    return receive(stop);
  }
  int descriptor() const override { return -1; }

  void queue(Command command, std::string_view name, Duration blocks_for) override {
    const bool joins = !units_.empty() && units_.back().open;
    Unit& unit = joins ? units_.back() : units_.emplace_back();
    if (const std::string_view key = key_of(command); unit.slot < 0 && !key.empty()) {
      unit.slot = slot_of(key);
    }
    unit.open = command[0] == "MULTI" || (unit.open && command[0] != "EXEC");
    unit.blocks_for = std::max(unit.blocks_for, blocks_for);
    unit.commands.push_back({.words = {command.begin(), command.end()},
                             .name = std::string(name.empty() ? command[0] : name),
                             .blocks_for = blocks_for});
  }

  void flush(const std::stop_token& stop) override {
    const auto unsent = std::ranges::find(units_, false, &Unit::routed);
    if (unsent == units_.end()) return;
    // With an old map, MOVED leads to the right server.
    if (!map_ || std::exchange(stale_, false)) {
      auto learned = learn({}, stop);
      if (!learned && !map_) {
        for (auto unit = unsent; unit != units_.end(); ++unit) unit->fail(learned.error());
        return;
      }
    }
    std::vector<Connection*> used;
    for (auto unit = unsent; unit != units_.end(); ++unit) {
      pass(*unit, map_->owner(std::max(unit->slot, 0)), false);
      if (unit->server != nullptr) used.push_back(unit->server);
    }
    for (Connection* server : used) server->flush(stop);
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    Unit& unit = units_.front();
    if (!std::exchange(unit.settled, true)) settle(unit, stop);
    StoreResult<Reply> reply = std::move(unit.replies.at(unit.taken++));
    if (unit.taken == unit.replies.size()) units_.pop_front();
    return reply;
  }

  std::uint64_t times_connected() const override {
    std::uint64_t all = 0;
    for (const auto& [address, server] : servers_) all += server->times_connected();
    return all;
  }

  std::optional<Endpoint> server_of(std::string_view key) const override {
    const HostPort* const owner = map_ ? map_->owner(slot_of(key)) : nullptr;
    return owner == nullptr ? cluster_ : server_at(cluster_, *owner);
  }

  void close() noexcept override {
    for (auto& [address, server] : servers_) server->close();
    for (Unit& unit : units_) {
      if (!unit.routed) unit.fail({StoreError::Kind::not_sent, display_ + ": closed"});
    }
    map_.reset();
  }

 private:
  struct Queued {
    std::vector<std::string> words;
    std::string name;
    Duration blocks_for{};
  };
  /// What must run on one server: a command or a transaction.
  struct Unit {
    std::vector<Queued> commands;
    int slot = -1;      ///< negative: any
    bool open = false;  ///< a transaction before its EXEC
    Duration blocks_for{};
    bool routed = false;           ///< sent, or failed
    HostPort address;              ///< of its server
    Connection* server = nullptr;  ///< whose answers are to be received; null: none are
    bool asking = false;           ///< the first of these is the answer to ASKING
    std::vector<StoreResult<Reply>> replies;
    std::size_t taken = 0;
    bool settled = false;  ///< the replies are final

    void fail(const StoreError& error) {
      routed = true;
      server = nullptr;
      replies.assign(commands.size(), tl::unexpected(error));
    }
  };
  /// Where a unit is to be sent again.
  struct Detour {
    HostPort to;
    bool asking = false;
    Duration pause{};
  };

  /// `down`: a server that does not answer; it is asked last.
  StoreResult<void> learn(const HostPort& down, const std::stop_token& stop) {
    std::vector<HostPort> candidates = cluster_.cluster;
    if (!newest_.host.empty()) candidates.insert(candidates.begin(), newest_);
    const auto known = map_ ? map_->primaries() : std::vector<HostPort>();
    for (const HostPort& one : known) {
      if (std::ranges::find(candidates, one) == candidates.end()) candidates.push_back(one);
    }
    std::stable_partition(candidates.begin(), candidates.end(),
                          [&](const HostPort& one) { return one != down; });
    candidates.resize(std::min(candidates.size(), kMostAsked));
    auto map = learn_slots(make_, cluster_, candidates, timeouts_, env_, stop);
    if (!map) return tl::unexpected(std::move(map.error()));
    map_ = *std::move(map);
    stale_ = false;
    return {};
  }

  /// Queues the unit at this server.
  void pass(Unit& unit, const HostPort* address, bool asking, bool again = false) {
    if (address == nullptr) {
      return unit.fail({StoreError::Kind::not_sent,
                        fmt::format("{}: no server has slot {}", display_, unit.slot)});
    }
    auto found = servers_.find(address->display());
    if (found == servers_.end()) {
      if (servers_.size() >= kMostServers) {
        return unit.fail({StoreError::Kind::not_sent, display_ + ": it names too many servers"});
      }
      found =
          servers_
              .emplace(address->display(), make_(server_at(cluster_, *address), timeouts_, env_))
              .first;
    }
    unit.routed = true;
    unit.address = *address;
    unit.server = found->second.get();
    unit.asking = asking;
    unit.replies.clear();
    if (asking) unit.server->queue({"ASKING"});
    std::vector<std::string_view> words;
    for (const Queued& one : unit.commands) {
      words.assign(one.words.begin(), one.words.end());
      unit.server->queue(words, again ? one.name + " redirected" : one.name, one.blocks_for);
    }
  }

  /// Receives the replies of the unit, if it was sent.
  static void collect(Unit& unit, const std::stop_token& stop) {
    Connection* const server = std::exchange(unit.server, nullptr);
    if (server == nullptr) return;
    // If it failed, so does the command behind it.
    if (unit.asking) (void)server->receive(stop);
    for (std::size_t i = 0; i < unit.commands.size(); ++i) {
      unit.replies.push_back(server->receive(stop));
    }
  }

  /// The unit's final replies.
  void settle(Unit& unit, const std::stop_token& stop) {
    const TimePoint until = env_.now() + timeouts_.answer + unit.blocks_for;
    collect(unit, stop);
    for (int redirects = 0;; ++redirects) {
      const auto detour = detour_of(unit, redirects, stop);
      if (!detour) return;
      if (redirects == kMostRedirects || env_.now() + detour->pause > until) {
        const auto last = std::ranges::find_if(unit.replies, [](auto& one) { return !one; });
        StoreError error = last->error();
        error.message += fmt::format(" (after {} redirects)", redirects);
        return unit.fail(error);
      }
      if (detour->pause > Duration::zero()) {
        env_.wait(nullptr, env_.now() + detour->pause, stop);
      }
      pass_again(unit, *detour, stop);
    }
  }

  void pass_again(Unit& unit, const Detour& detour, const std::stop_token& stop) {
    // A server answers in order, so what other units still expect from it comes first.
    const auto found = servers_.find(detour.to.display());
    for (Unit& other : units_) {
      if (found != servers_.end() && other.server == found->second.get()) collect(other, stop);
    }
    pass(unit, &detour.to, detour.asking, true);
    collect(unit, stop);
  }

  /// Nothing if the replies are final.
  std::optional<Detour> detour_of(const Unit& unit, int redirects, const std::stop_token& stop) {
    using Code = StoreError::Code;
    for (const auto& reply : unit.replies) {
      if (reply) continue;
      const StoreError& error = reply.error();
      if (error.code == Code::moved || error.code == Code::asked) {
        const auto to = redirected_to(error.message, unit.address);
        if (!to) return std::nullopt;
        if (error.code == Code::moved) {
          stale_ = true;
          newest_ = *to;
        }
        return Detour{.to = *to, .asking = error.code == Code::asked};
      }
      if (error.code == Code::try_again) {
        return Detour{.to = unit.address,
                      .asking = unit.asking,
                      .pause = kTryAgainAfter * (1U << static_cast<unsigned>(redirects))};
      }
    }
    const auto& first = unit.replies.front();
    if (first || first.error().kind == StoreError::Kind::rejected || unit.address.host.empty()) {
      return std::nullopt;
    }
    // Perhaps another server has taken over.
    stale_ = true;
    if (first.error().kind != StoreError::Kind::not_sent || stop.stop_requested()) {
      return std::nullopt;
    }
    if (!learn(unit.address, stop)) return std::nullopt;
    const HostPort* const owner = map_->owner(std::max(unit.slot, 0));
    if (owner == nullptr || *owner == unit.address) return std::nullopt;
    return Detour{.to = *owner};
  }

  const MakeConnection make_;
  const Endpoint cluster_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  std::optional<SlotMap> map_;
  bool stale_ = false;  ///< the slots are learned anew before the next command
  HostPort newest_;     ///< that has got a slot lately; the others may not know yet
  std::map<std::string, std::unique_ptr<Connection>> servers_;  ///< by address
  std::deque<Unit> units_;                                      ///< oldest first
};

}  // namespace

int slot_of(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    const bool tagged = close != std::string_view::npos && close > open + 1;
    if (tagged) key = key.substr(open + 1, close - open - 1);
  }
  // CRC-16/XMODEM, as in Redis Cluster's specification.
  boost::crc_optimal<16, 0x1021, 0, 0, false, false> crc;
  crc.process_bytes(key.data(), key.size());
  return static_cast<int>(crc.checksum() % kSlots);
}

std::optional<SlotMap> SlotMap::read(const Reply& reply, const HostPort& asked) {
  if (reply.type != Reply::Type::array || reply.elements.empty()) return std::nullopt;
  SlotMap map;
  for (const Reply& range : reply.elements) {
    if (range.elements.size() < 3) return std::nullopt;
    const auto first = number_in(range.elements[0], 0, kSlots - 1);
    const auto last = number_in(range.elements[1], 0, kSlots - 1);
    const Reply& server = range.elements[2];
    if (!first || !last || *first > *last || server.elements.size() < 2) return std::nullopt;
    const auto port = number_in(server.elements[1], 1, 65535);
    const auto primary = address_of(server.elements[0].text, port.value_or(0), asked);
    if (!primary) return std::nullopt;
    map.ranges_.push_back({static_cast<int>(*first), static_cast<int>(*last), *primary});
  }
  std::ranges::sort(map.ranges_, {}, &Range::first);
  const auto overlap = std::ranges::adjacent_find(
      map.ranges_, [](const Range& one, const Range& next) { return next.first <= one.last; });
  return overlap == map.ranges_.end() ? std::optional(std::move(map)) : std::nullopt;
}

const HostPort* SlotMap::owner(int slot) const {
  const auto behind = std::ranges::upper_bound(ranges_, slot, {}, &Range::first);
  if (behind == ranges_.begin() || std::prev(behind)->last < slot) return nullptr;
  return &std::prev(behind)->primary;
}

std::vector<HostPort> SlotMap::primaries() const {
  std::vector<HostPort> all;
  for (const Range& range : ranges_) {
    if (std::ranges::find(all, range.primary) == all.end()) all.push_back(range.primary);
  }
  return all;
}

std::optional<HostPort> redirected_to(std::string_view error, const HostPort& asked) {
  const std::string_view address = error.substr(error.rfind(' ') + 1);
  const std::size_t colon = address.rfind(':');  // an IPv6 address has no brackets here
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(address.substr(colon + 1));
  return port ? address_of(address.substr(0, colon), *port, asked) : std::nullopt;
}

std::unique_ptr<Connection> make_cluster_connection(MakeConnection make, const Endpoint& cluster,
                                                    const Timeouts& timeouts, Env& env) {
  return std::make_unique<ClusterConnection>(std::move(make), cluster, timeouts, env);
}

StoreResult<std::vector<Endpoint>> primaries_of(const Endpoint& cluster, const Timeouts& timeouts,
                                                Env& env) {
  const auto factory = make_connection_factory();
  const auto make = [&](const Endpoint& server, const Timeouts& times, Env& its) {
    return factory->make(server, times, its);
  };
  return learn_slots(make, cluster, cluster.cluster, timeouts, env, {})
      .map([&](const SlotMap& map) {
        std::vector<Endpoint> all;
        for (const HostPort& one : map.primaries()) all.push_back(server_at(cluster, one));
        return all;
      });
}

}  // namespace lockbench::redis
