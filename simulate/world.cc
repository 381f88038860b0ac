#include "simulate/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "simulate/wire.h"
#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

// Enough to tell what happened during a hold.
constexpr std::size_t kPausesKept = 16;

TimePoint next_pause(Random& random, const Pauses& pauses, TimePoint from) {
  if (pauses.per_second <= 0) return TimePoint::max();
  const double wait = loadgen::draw_exponential(random) / pauses.per_second;
  constexpr double kLongest = 1e9;  // seconds: later than any end
  return from + std::chrono::duration_cast<Duration>(
                    std::chrono::duration<double>(std::min(wait, kLongest)));
}

}  // namespace

World::World(std::uint64_t seed, Trace trace)
    : carrier_(Carrier::current()),
      began_(carrier_.now()),
      random_(seed),
      trace_(std::move(trace)),
      earlier_(carrier_.make_event()) {
  auto player = carrier_.start([this](const std::stop_token& stop) { play(stop); },
                               [](const std::string& why) {
                                 fmt::print(stderr, "the simulation ended: {}\n", why);
                                 std::abort();
                               });
  if (!player) throw std::runtime_error(player.error());
  player_ = *std::move(player);
}

void World::at(TimePoint when, std::function<void()> act) {
  due_.push_back({std::max(when, now()), numbers_++, std::move(act)});
  std::push_heap(due_.begin(), due_.end());
  if (due_.front().when < asleep_until_) earlier_->set();
}

void World::play(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (due_.empty() || due_.front().when > now()) {
      asleep_until_ = due_.empty() ? TimePoint::max() : due_.front().when;
      carrier_.wait(earlier_.get(), asleep_until_, stop);
      asleep_until_ = TimePoint::min();
      continue;
    }
    std::pop_heap(due_.begin(), due_.end());
    const auto act = std::move(due_.back().act);
    due_.pop_back();
    act();
    if (++played_ == limit_) at_limit_();
  }
}

void World::trace(std::string_view who, int number, std::string_view what) const {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t since = time().count();
  trace_(fmt::format("{}.{:09} {}-{} {}", since / kNanoseconds, since % kNanoseconds, who, number,
                     what));
}

// Clocks. A triangle: too fast until it is kMostAhead, then too slow until it is as far behind.

Clock::Clock(Random& random, double drift, Duration offset) : drift_(drift), offset_(offset) {
  if (drift_ == 0) return;
  const double period = 4.0 * static_cast<double>(kMostAhead.count()) / drift_;
  phase_ = Duration(static_cast<Duration::rep>(loadgen::draw_unit(random) * period));
}

Duration Clock::ahead(TimePoint real) const {
  const double most = static_cast<double>(kMostAhead.count());
  const double period = 4 * most / drift_;
  const double at =
      std::fmod(static_cast<double>((real.time_since_epoch() + phase_).count()), period);
  const double up = at < period / 2 ? drift_ * at - most : 3 * most - drift_ * at;
  return Duration(static_cast<Duration::rep>(up));
}

TimePoint Clock::when(TimePoint time) const {
  if (drift_ == 0 || time == TimePoint::max()) return time;
  // Too early by at most twice what the clock gains or loses within kMostAhead.
  constexpr Duration kMargin = std::chrono::microseconds(20);
  TimePoint real = time - ahead(time) - kMargin;
  // Bounded: each step is shorter than the one before.
  for (Duration left = time - now(real); left > Duration::zero(); left = time - now(real)) {
    real += left;
  }
  return real;
}

// Pauses.

tl::expected<Pauses, std::string> Pauses::parse(std::string_view text) {
  const auto wrong = [&] {
    return tl::unexpected(fmt::format(
        "\"{}\" is no pause; allowed: 1%@2s (of the holds of a lock), 3/h@exp(2s) (of the time of "
        "each client; per s, m, h, d or y)",
        text));
  };
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return wrong();
  const auto length = DurationDistribution::parse(text.substr(at + 1));
  if (!length) return tl::unexpected(fmt::format("\"{}\": {}", text, length.error()));
  Pauses pauses{.length = *length};
  const std::string_view often = text.substr(0, at);
  if (often.ends_with('%')) {
    const auto share = parse_number<double>(often.substr(0, often.size() - 1));
    if (!share || !(*share >= 0 && *share <= 100)) return wrong();
    pauses.share = *share / 100;
    return pauses;
  }
  const auto rate = parse_rate(often);
  if (!rate) return wrong();
  pauses.per_second = *rate;
  return pauses;
}

std::string Pauses::to_string() const {
  return per_second > 0 ? fmt::format("{}/h@{}", per_second * 3600, length.to_string())
                        : fmt::format("{}%@{}", share * 100, length.to_string());
}

std::optional<double> parse_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash + 2 != text.size()) return std::nullopt;
  const auto count = parse_number<double>(text.substr(0, slash));
  constexpr double kDay = 86'400, kHour = 3'600, kMinute = 60;
  const char unit = text.back();
  const double length = unit == 's'   ? 1
                        : unit == 'm' ? kMinute
                        : unit == 'h' ? kHour
                        : unit == 'd' ? kDay
                        : unit == 'y' ? 365.25 * kDay
                                      : 0;
  // Bounds the events of a moment.
  constexpr double kMostPerSecond = 1000;
  const bool fits = count && length > 0 && *count > 0 && *count / length <= kMostPerSecond;
  return fits ? std::optional(*count / length) : std::nullopt;
}

// Hosts.

Host::Host(World& world, int its_number, int its_region, Clock its_clock,
           std::span<const Pauses> pauses)
    : number(its_number), region(its_region), clock(its_clock), world_(world) {
  for (const Pauses& kind : pauses) {
    pauses_.emplace_back(kind, next_pause(world.random(), kind, world.now()));
  }
}

TimePoint Host::resumes(TimePoint time) {
  for (auto& [kind, next] : pauses_) {
    // Those that begin in another pause are counted from its end on.
    while (next <= time) {
      const Duration length = kind.length.draw(world_.random());
      const TimePoint from = next;
      next = next_pause(world_.random(), kind, from + length);
      pause(from, length);
    }
  }
  for (const Interval& one : intervals_) {
    if (one.from <= time && time < one.until) time = one.until;
  }
  return time;
}

void Host::resume() {
  stopped_ = false;
  for (Event* const wait : stopped_waits_) wait->set();
}

void Host::pass_pause() {
  if (stopped_) {
    const auto resumed = world_.carrier().make_event();
    stopped_waits_.push_back(resumed.get());
    while (stopped_ && !dead_) world_.carrier().wait(resumed.get(), TimePoint::max(), {});
    std::erase(stopped_waits_, resumed.get());
  }
  if (pauses_.empty() && intervals_.empty()) return;
  for (TimePoint until = resumes(world_.now()); until > world_.now() && !dead_;
       until = resumes(world_.now())) {
    world_.carrier().wait(nullptr, until, {});
  }
}

void Host::wake_late() {
  const Duration late = world_.late(number);
  if (late > Duration::zero()) world_.carrier().wait(nullptr, world_.now() + late, {});
}

void Host::pause(TimePoint from, Duration length) {
  if (length <= Duration::zero()) return;
  if (world_.traced()) {
    world_.trace("client", number,
                 fmt::format("stands still for {} from {:.9f} on", format_duration(length),
                             seconds(world_.time() + (from - world_.now()))));
  }
  const auto later =
      std::ranges::find_if(intervals_, [&](const Interval& one) { return one.from > from; });
  intervals_.insert(later, {from, from + length});
  if (intervals_.size() > kPausesKept) intervals_.pop_front();
}

void Host::holds(Duration length) {
  for (const auto& [kind, next] : pauses_) {
    if (kind.share <= 0 || loadgen::draw_unit(world_.random()) >= kind.share) continue;
    const double into = loadgen::draw_unit(world_.random()) * static_cast<double>(length.count());
    pause(world_.now() + Duration(static_cast<Duration::rep>(into)),
          kind.length.draw(world_.random()));
  }
}

bool Host::paused_since(TimePoint since) const {
  const TimePoint now = world_.now();
  return std::ranges::any_of(
      intervals_, [&](const Interval& one) { return one.from <= now && one.until > since; });
}

void Host::kill() {
  dead_ = true;
  if (world_.traced()) world_.trace("client", number, "dies");
  for (HostEnv* const env : envs) env->wake();
  for (Event* const wait : stopped_waits_) wait->set();
  for (const auto& one : std::exchange(wires, {})) {
    if (const auto wire = one.lock()) wire->close();
  }
}

HostEnv::HostEnv(Host& host, std::uint64_t seed, bool of_service)
    : host_(host), random_(seed), of_service_(of_service) {
  host_.envs.push_back(this);
}

HostEnv::~HostEnv() { std::erase(host_.envs, this); }

WallTime HostEnv::wall_now() {
  World& world = host_.world();
  return host_.clock.wall(world.now(), world.carrier().wall_now());
}

WaitResult HostEnv::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  Carrier& carrier = host_.world().carrier();
  if (!host_.dead()) {
    if (event == nullptr) {
      if (!own_) own_ = carrier.make_event();
      event = own_.get();
    }
    const bool sleeps = event == own_.get();
    waiting_ = event;
    WaitResult result = carrier.wait(event, host_.clock.when(deadline), stop);
    waiting_ = nullptr;
    if (result != WaitResult::stopped) {
      host_.wake_late();
      host_.pass_pause();
    }
    if (!host_.dead()) {
      // Only death wakes a sleeper.
      return sleeps && result == WaitResult::signalled ? WaitResult::timed_out : result;
    }
  }
  // A service of a dead process does nothing more, until it is taken away.
  if (of_service_) carrier.wait(nullptr, TimePoint::max(), stop);
  return WaitResult::stopped;
}

}  // namespace lockbench::simulate
