#include "simulate/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "simulate/wire.h"

namespace lockbench::simulate {
namespace {

// "here" is one machine. The others are regions of AWS: eu-west-1, us-east-1, ap-southeast-1.
constexpr std::array<std::string_view, 4> kNames{"here", "eu", "us", "ap"};

struct Delay {
  double median_ms, p99_ms;
};

// One way. Loopback: half of the round trips in results/reference/alone.json. Within a region, the
// zones are 0.25 to 3.4 ms apart there and back (xkyle.com, "Measuring AWS Region and AZ Latency").
// Between regions: half of round trips as public pings show them (cloudping.co), rounded: eu-us 70
// ms, eu-ap 175 ms, us-ap 220 ms. That one packet in a hundred takes a tenth longer is assumed.
constexpr Delay kLoopback{0.025, 0.1}, kZones{0.4, 1.5};
constexpr double kHalfRoundTrip[3][3] = {{0, 35, 87.5}, {35, 0, 110}, {87.5, 110, 0}};

DurationDistribution delay_between(int a, int b) {
  Delay delay = kLoopback;
  if (a != kLocalRegion && b != kLocalRegion) {
    const double median = kHalfRoundTrip[a - 1][b - 1];
    constexpr double kSlow = 1.1;
    delay = a == b ? kZones : Delay{median, kSlow * median};
  }
  const auto duration = [](double ms) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
  };
  return DurationDistribution::lognormal(duration(delay.median_ms), duration(delay.p99_ms));
}

/// Draws of a delay that are made in advance: the logarithms of a lognormal would be a tenth of the
/// time of a simulation.
std::vector<Duration> sample_of(const DurationDistribution& delay) {
  constexpr std::size_t kDraws = 8192;
  Random random(1);
  std::vector<Duration> draws(kDraws);
  for (Duration& draw : draws) draw = delay.draw(random);
  return draws;
}

const std::vector<Duration>& known_delay(int from, int to) {
  static const auto kDelays = [] {
    std::vector<std::vector<Duration>> made;
    for (int a = 0; a < static_cast<int>(kNames.size()); ++a) {
      for (int b = 0; b < static_cast<int>(kNames.size()); ++b)
        made.push_back(sample_of(delay_between(a, b)));
    }
    return made;
  }();
  return kDelays[static_cast<std::size_t>(from) * kNames.size() + static_cast<std::size_t>(to)];
}

// Linux: TCP_RTO_MIN. Doubles with each loss.
constexpr Duration kFirstRetransmission = std::chrono::milliseconds(200);
constexpr int kMostRetransmissions = 8;

/// A number that is the same for one pair in one block.
double share_of(std::uint64_t salt, const Wire& wire) {
  Random pair(salt, static_cast<std::uint64_t>(wire.host.number) * 64 +
                        static_cast<std::uint64_t>(wire.server.number));
  return loadgen::draw_unit(pair);
}

}  // namespace

tl::expected<int, std::string> find_region(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<int>(found - kNames.begin());
  return tl::unexpected(fmt::format("\"{}\" is not one of {}", name, fmt::join(kNames, ", ")));
}

std::string_view region_name(int region) { return kNames.at(static_cast<std::size_t>(region)); }

Network::Network(World& world, Duration added,
                 const std::optional<DurationDistribution>& on_one_machine)
    : world_(world), added_(added) {
  if (on_one_machine) on_one_machine_ = sample_of(*on_one_machine);
}

Duration Network::draw(int from, int to) {
  const bool measured = !on_one_machine_.empty() && from == kLocalRegion && to == kLocalRegion;
  const std::vector<Duration>& draws = measured ? on_one_machine_ : known_delay(from, to);
  Duration delay = draws[world_.random()() % draws.size()] + added_ / 2;
  if (loss_ <= 0) return delay;
  Duration again = kFirstRetransmission;
  for (int lost = 0; lost < kMostRetransmissions && loadgen::draw_unit(world_.random()) < loss_;
       ++lost) {
    delay += std::exchange(again, 2 * again);
  }
  return delay;
}

void Network::send(Wire& wire, Way way, TimePoint departs, std::function<void()> arrive) {
  if (wire.relay != nullptr) {
    const std::optional<Duration> later = wire.relay->pass(wire, way, arrive);
    if (!later) return;
    departs += *later;
  }
  if (Block* const block = blocks_.empty() ? nullptr : block_of(wire, way)) {
    block->held.push_back({&wire, way, std::move(arrive)});
    return;
  }
  const bool out = way == Way::to_server;
  const int here = wire.host.region, there = wire.server.region;
  deliver({&wire, way, std::move(arrive)},
          departs + draw(out ? here : there, out ? there : here) + world_.late(wire.host.number));
}

void Network::deliver(Message message, TimePoint earliest) {
  TimePoint& last = message.wire->last_arrival[message.way == Way::to_server ? 0 : 1];
  last = std::max(last, earliest);
  world_.at(last, std::move(message.arrive));
}

Network::Block* Network::block_of(const Wire& wire, Way way) {
  for (auto& [number, block] : blocks_) {
    if (block.ways[way == Way::to_server ? 0 : 1] && share_of(block.salt, wire) < block.share) {
      return &block;
    }
  }
  return nullptr;
}

int Network::block(double share, bool to_servers, bool to_clients) {
  blocks_.emplace(
      ++blocks_made_,
      Block{.share = share, .ways = {to_servers, to_clients}, .salt = world_.random()()});
  return blocks_made_;
}

void Network::unblock(int number) {
  const auto found = blocks_.find(number);
  if (found == blocks_.end()) return;
  std::vector<Message> held = std::move(found->second.held);
  blocks_.erase(found);
  const double wait =
      loadgen::draw_unit(world_.random()) * static_cast<double>(kFirstRetransmission.count());
  const TimePoint when = world_.now() + Duration(static_cast<Duration::rep>(wait));
  for (Message& message : held) {
    Block* const other = block_of(*message.wire, message.way);
    if (other == nullptr) {
      deliver(std::move(message), when);
    } else {
      other->held.push_back(std::move(message));
    }
  }
}

}  // namespace lockbench::simulate
