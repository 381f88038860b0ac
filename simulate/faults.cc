#include "simulate/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

struct KindInfo {
  std::string_view name;
  bool has_value, has_length;
};

/// By Disturbance.
constexpr std::array<KindInfo, 12> kKinds{{{"store-kill", false, true},
                                           {"store-freeze", false, true},
                                           {"failover", false, true},
                                           {"partition", true, true},
                                           {"partition-to", true, true},
                                           {"partition-from", true, true},
                                           {"delay", true, true},
                                           {"client-pause", false, true},
                                           {"client-kill", false, true},
                                           {"clock-step", true, false},
                                           {"client-clock-step", true, false},
                                           {"eviction", false, false}}};
constexpr std::size_t kRemembered = 64;

std::string what_is_allowed() {
  std::vector<std::string> forms;
  for (const KindInfo& kind : kKinds) {
    forms.push_back(fmt::format("{}{} RATE{}", kind.name, kind.has_value ? ":VALUE" : "",
                                kind.has_length ? " LENGTH" : ""));
  }
  return fmt::format(
      "allowed: {}, loss:SHARE, clock-drift:PPM, clock-offset:D; a rate is 3/h (s, m, h, d, y)",
      fmt::join(forms, ", "));
}

std::optional<Duration> signed_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto value = parse_duration(text.substr(negative ? 1 : 0));
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

std::optional<double> share_in(std::string_view text, double most) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

/// False if the line is none of these.
bool read_setting(std::string_view name, std::string_view value, Faults& faults) {
  if (name == "loss") {
    constexpr double kMostLoss = 0.5;
    const auto share = share_in(value, kMostLoss);
    faults.loss = share.value_or(0);
    return share.has_value();
  }
  if (name == "clock-drift") {
    // The kernel slews by at most 500 ppm; crystals are worse at times.
    constexpr double kMostDrift = 1000, kMillion = 1e6;
    const auto ppm = share_in(value, kMostDrift);
    faults.clock_drift = ppm.value_or(0) / kMillion;
    return ppm.has_value();
  }
  const auto offset = name == "clock-offset" ? signed_duration(value) : std::nullopt;
  faults.clock_offset = offset.value_or(Duration::zero());
  return offset && *offset >= Duration::zero();
}

std::optional<RandomFault> read_fault(const std::vector<std::string>& words, std::string_view name,
                                      std::string_view value) {
  const auto info = std::ranges::find(kKinds, name, &KindInfo::name);
  if (info == kKinds.end() || words.size() != (info->has_length ? 3U : 2U)) return std::nullopt;
  RandomFault fault{.kind = static_cast<Disturbance>(info - kKinds.begin())};
  if (info->has_value == value.empty()) return std::nullopt;
  const bool shares = name.starts_with("partition");
  if (shares) {
    const auto share = share_in(value, 1);
    if (!share) return std::nullopt;
    fault.share = *share;
  } else if (info->has_value) {
    const auto amount = signed_duration(value);
    if (!amount || (fault.kind == Disturbance::delay && *amount < Duration::zero())) {
      return std::nullopt;
    }
    fault.amount = *amount;
  }
  const auto rate = parse_rate(words[1]);
  if (!rate) return std::nullopt;
  fault.per_second = *rate;
  if (!info->has_length) return fault;
  const auto length = DurationDistribution::parse(words[2]);
  if (!length) return std::nullopt;
  fault.length = *length;
  return fault;
}

}  // namespace

std::string_view to_string(Disturbance kind) {
  return kKinds.at(static_cast<std::size_t>(kind)).name;
}

tl::expected<Faults, std::string> Faults::read(std::istream& file, const std::string& name) {
  Faults faults;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words_in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; words_in >> word;) words.push_back(word);
    if (words.empty()) continue;
    const std::string_view first = words[0];
    const std::size_t colon = std::min(first.find(':'), first.size());
    const std::string_view kind = first.substr(0, colon);
    const std::string_view value = first.substr(std::min(colon + 1, first.size()));
    if (words.size() == 1 && read_setting(kind, value, faults)) continue;
    const auto fault = read_fault(words, kind, value);
    if (!fault) {
      return tl::unexpected(fmt::format("{}, line {}: \"{}\" is no fault; {}", name, number, line,
                                        what_is_allowed()));
    }
    faults.random.push_back(*fault);
  }
  return faults;
}

void Faults::add(const loadgen::Fault& fault) {
  using Kind = loadgen::FaultKind;
  RandomFault added{
      .share = fault.share,
      .amount = fault.delay,
      .servers = fault.nodes,
      .holder = loadgen::is_of_client(fault.kind),
      .at = fault.at,
      .length = DurationDistribution::constant(fault.lasts.value_or(Duration::zero())),
      .lasts = !fault.lasts};
  switch (fault.kind) {
    case Kind::store_kill:
    case Kind::node_kill:
      added.kind = Disturbance::store_kill;
      break;
    case Kind::store_freeze:
    case Kind::node_freeze:
      added.kind = Disturbance::store_freeze;
      break;
    case Kind::failover:
      added.kind = Disturbance::failover;
      added.lasts = false;
      break;
    case Kind::partition:
      added.kind = Disturbance::partition;
      break;
    case Kind::delay:
      added.kind = Disturbance::delay;
      break;
    case Kind::client_pause:
      added.kind = Disturbance::client_pause;
      break;
    case Kind::client_kill:
      added.kind = Disturbance::client_kill;
      break;
  }
  random.push_back(std::move(added));
}

bool Faults::any(Disturbance kind) const {
  return std::ranges::any_of(random, [&](const RandomFault& one) { return one.kind == kind; });
}

void FaultPlayer::begin(TimePoint origin) {
  struck_.network.set_loss(faults_.loss);
  for (const RandomFault& fault : faults_.random) {
    if (!fault.at) {
      await_next(fault);
      continue;
    }
    struck_.world.at(origin + *fault.at, [this, &fault] { strike(fault); });
  }
}

void FaultPlayer::await_next(const RandomFault& fault) {
  const double wait = loadgen::draw_exponential(struck_.world.random()) / fault.per_second;
  constexpr double kLongest = 1e9;  // seconds: later than any end
  const auto in = std::chrono::duration<double>(std::min(wait, kLongest));
  struck_.world.at(struck_.world.now() + std::chrono::duration_cast<Duration>(in), [this, &fault] {
    strike(fault);
    await_next(fault);
  });
}

void FaultPlayer::strike(const RandomFault& fault) {
  World& world = struck_.world;
  const TimePoint now = world.now();
  const auto holds = [&](const auto& host) { return struck_.holds(host->number); };
  if (fault.holder && std::ranges::none_of(struck_.hosts, holds)) {
    // Soon one of them holds a lock.
    constexpr Duration kLook = std::chrono::milliseconds(1);
    return world.at(now + kLook, [this, &fault] { strike(fault); });
  }
  const TimePoint until = fault.lasts ? TimePoint::max() : now + fault.length.draw(world.random());
  if (world.traced()) {
    world.trace("fault", static_cast<int>(fault.kind),
                fmt::format("{} strikes", to_string(fault.kind)));
  }
  struck_kinds_.insert(fault.kind);
  past_.push_back({fault.kind, now, until});
  if (past_.size() > kRemembered) past_.pop_front();
  struck_.on_strike(fault.kind, until);
  Network& network = struck_.network;
  switch (fault.kind) {
    case Disturbance::partition:
    case Disturbance::partition_to:
    case Disturbance::partition_from: {
      const int block = network.block(fault.share, fault.kind != Disturbance::partition_from,
                                      fault.kind != Disturbance::partition_to);
      return heal(until, [&network, block] { network.unblock(block); });
    }
    case Disturbance::delay:
      network.add_delay(fault.amount);
      return heal(until, [&network, amount = fault.amount] { network.add_delay(-amount); });
    case Disturbance::client_pause:
    case Disturbance::client_kill:
    case Disturbance::client_clock_step:
      return strike_client(fault, until);
    default:
      return strike_servers(fault, until);
  }
}

void FaultPlayer::heal(TimePoint when, std::function<void()> act) {
  if (when != TimePoint::max()) struck_.world.at(when, std::move(act));
}

void FaultPlayer::strike_servers(const RandomFault& fault, TimePoint until) {
  Nodes& nodes = struck_.nodes;
  const std::size_t first = any_of(nodes);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(fault.servers), nodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    StoreServer& node = *nodes[(first + i) % nodes.size()];
    switch (fault.kind) {
      case Disturbance::store_kill:
        node.kill();
        heal(until, [&node] { node.restart(); });
        break;
      case Disturbance::store_freeze:
        node.freeze();
        heal(until, [&node] { node.thaw(); });
        break;
      case Disturbance::failover:
        node.kill();
        heal(until, [&node] {
          if (!node.fail_over()) node.restart();
        });
        break;
      case Disturbance::clock_step:
        node.clock.step(fault.amount);
        break;
      default:
        node.evict(false);
        break;
    }
  }
}

void FaultPlayer::strike_client(const RandomFault& fault, TimePoint until) {
  std::vector<Host*> candidates;
  for (const auto& host : struck_.hosts) {
    if (!host->dead() && (!fault.holder || struck_.holds(host->number))) {
      candidates.push_back(host.get());
    }
  }
  if (candidates.empty()) return;
  Host& host = *candidates[any_of(candidates)];
  if (fault.kind == Disturbance::client_clock_step) return host.clock.step(fault.amount);
  if (fault.kind == Disturbance::client_pause) {
    const TimePoint now = struck_.world.now();
    constexpr Duration kForEver = std::chrono::hours(24 * 365);
    return host.pause(now, until == TimePoint::max() ? kForEver : until - now);
  }
  host.kill();
  heal(until, [&host] { host.revive(); });
}

std::optional<Disturbance> FaultPlayer::latest_since(TimePoint since) const {
  for (auto one = past_.rbegin(); one != past_.rend(); ++one) {
    if (one->until >= since || one->at >= since) return one->kind;
  }
  return std::nullopt;
}

}  // namespace lockbench::simulate
