#include "loadgen/run/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// Shares of the busiest key's capacity: a lock that is mostly free, and one that is mostly taken
/// but can still keep up.
constexpr std::array kDemands{0.3, 0.7};
/// Round-trip time between zones of one region.
constexpr Duration kNetwork = 1ms;
constexpr int kDemandClients = 32;

struct Shape {
  std::string_view name;
  int clients;
  DurationDistribution hold;
};

const Shape& shape_of(NamedLoad load) {
  static const std::array<Shape, 4> shapes{{
      {"alone", 1, {}},
      {"demand", kDemandClients, DurationDistribution::exponential(2ms)},
      {"saturated", Workload().clients, DurationDistribution::constant(1ms)},
      {"reacquire", Workload().clients, {}},
  }};
  return shapes.at(static_cast<std::size_t>(load));
}

/// The share of the most frequent key when one key is drawn.
double busiest_draw_share(const Workload& workload) {
  if (const auto& hot = workload.hot_set) {
    return std::max(hot->share / hot->keys, (1 - hot->share) / (workload.key_count() - hot->keys));
  }
  if (workload.key_per_client || workload.key_skew == 0) return 1.0 / workload.key_count();
  double weights = 0;
  for (int key = 1; key <= workload.key_count(); ++key)
    weights += std::pow(key, -workload.key_skew);
  return 1 / weights;
}

/// The keys' capacity if they are never free: a client needs a round trip to take a released key.
/// With several keys it holds some while it takes and gives back others: on average, for one more
/// round trip for each of these.
double most_sections_per_second(const Workload& workload) {
  const Duration taken = workload.hold.mean() + workload.rtt * workload.locks_per_section;
  return 1 / (seconds(taken) * busiest_key_share(workload));
}

constexpr std::size_t kLongestLine = 128;

/// Removes the first field and its comma, and returns its number; nothing if it is not a number.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::string_view field = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), field.size() + 1));
  return parse_number<std::uint64_t>(field);
}

struct Request {
  std::uint64_t transaction = 0;
  Wanted wanted;
};

tl::expected<Request, std::string> parse(std::string_view text) {
  const auto wrong = [](std::string what) { return tl::unexpected(std::move(what)); };
  const auto commas = std::count(text.begin(), text.end(), ',');
  const bool has_task = commas == 4;
  if (commas != 3 && !has_task) {
    return wrong("transaction,task,type,lock,mode are expected, such as 17,0,1,1203,2");
  }
  const auto transaction = take_number(text);
  if (!transaction) return wrong("the transaction is not a whole number");
  if (has_task && take_number(text) != 0U) return wrong("the task is not 0, a request for a lock");
  if (!take_number(text)) return wrong("the type is not a whole number");
  const auto lock = take_number(text);
  if (!lock || *lock >= std::uint64_t{Trace::kMostKeys}) {
    return wrong(fmt::format("the lock is not a whole number below {}", Trace::kMostKeys));
  }
  const auto mode = take_number(text);
  if (mode != 1U && mode != 2U) return wrong("the mode is neither 1, shared, nor 2, exclusive");
  return Request{*transaction,
                 {static_cast<int>(*lock), *mode == 1U ? Mode::shared : Mode::exclusive}};
}

}  // namespace

std::string_view to_string(NamedLoad load) { return shape_of(load).name; }

std::vector<Workload> points_of(NamedLoad load, const Workload& given, const Decided& decided) {
  Workload point = given;
  const Shape& shape = shape_of(load);
  point.load = shape.name;
  if (!decided.clients) point.clients = shape.clients;
  if (!decided.hold) point.hold = shape.hold;
  std::vector<Workload> points;
  if (load == NamedLoad::alone && !decided.rtt) {
    for (const Duration rtt : {Duration::zero(), Duration(kNetwork)}) {
      point.rtt = rtt;
      points.push_back(point);
    }
  } else if (load == NamedLoad::demand && !decided.rate && !point.hold.is_zero()) {
    for (const double share : kDemands) {
      point.rate = share * most_sections_per_second(point);
      points.push_back(point);
    }
  } else {
    points.push_back(point);
  }
  return points;
}

results::Load load_of(const Workload& workload) {
  results::Load load{.name = workload.load,
                     .clients = static_cast<std::uint64_t>(workload.clients),
                     .hold_seconds = seconds(workload.hold.mean()),
                     .rate = workload.rate,
                     .rtt_seconds = seconds(workload.rtt)};
  if (workload.hot_set) load.hot_set = workload.hot_set->to_string();
  if (workload.pool) load.pool = static_cast<std::uint64_t>(*workload.pool);
  if (workload.trace) load.trace = workload.trace->path;
  return load;
}

double busiest_key_share(const Workload& workload) {
  return std::min(1.0, busiest_draw_share(workload) * workload.locks_per_section);
}

double ServiceTimes::lock_taken(double rate, const LockShare& lock) const {
  return lock.excludes ? std::min(1.0, rate * lock.busiest_key * taken()) : 0;
}

ServiceTimes service_times(std::span<const results::Run> runs) {
  ServiceTimes sum;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  double holds = 0, turnarounds = 0, sections = 0, time = 0;
  for (const results::Run& run : runs) {
    holds += number(run.hold.count);
    sum.hold += number(run.hold.count) * run.hold.mean;
    turnarounds += number(run.turnaround.count);
    sum.turnaround += number(run.turnaround.count) * run.turnaround.mean;
    sections += number(run.sections);
    sum.awaited_share += number(run.awaited_releases);
    time += run.duration_seconds;
  }
  const auto per = [](double total, double count) { return count > 0 ? total / count : 0; };
  sum.hold = per(sum.hold, holds);
  sum.turnaround = per(sum.turnaround, turnarounds);
  sum.awaited_share = std::min(1.0, per(sum.awaited_share, sections));
  sum.per_second = per(sections, time);
  return sum;
}

tl::expected<Trace, std::string> Trace::read(const std::string& path, TraceLocks* locks) {
  // A regular file, as each run reads it again.
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return tl::unexpected(fmt::format("{}: there is no such file", path));
  }
  std::ifstream file(path);
  if (!file) return tl::unexpected(fmt::format("{}: cannot be read", path));
  auto all = read_trace(file, path);
  if (!all) return tl::unexpected(all.error());
  if (all->ends.empty()) return tl::unexpected(fmt::format("{}: no transactions", path));
  const auto highest = std::ranges::max_element(all->locks, {}, &Wanted::key);
  Trace trace{.path = path, .keys = highest->key + 1, .transactions = all->ends.size()};
  if (locks != nullptr) *locks = *std::move(all);
  return trace;
}

tl::expected<TraceLocks, std::string> read_trace(std::istream& lines, std::string_view name) {
  TraceLocks all;
  std::uint64_t number = 0;  // of the line
  const auto wrong = [&](std::string_view what) {
    return tl::unexpected(fmt::format("{}: line {}: {}", name, number, what));
  };
  std::array<char, kLongestLine + 1> line{};
  std::optional<std::uint64_t> transaction;
  std::size_t begin = 0;  // of its locks
  while (lines.getline(line.data(), line.size())) {
    ++number;
    const auto taken = static_cast<std::size_t>(lines.gcount());
    std::string_view text(line.data(), taken - (lines.eof() ? 0 : 1));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text.starts_with('#')) continue;
    const auto request = parse(text);
    if (!request) return wrong(request.error());
    if (transaction != request->transaction) {
      if (transaction) all.ends.push_back(all.locks.size());
      transaction = request->transaction;
      begin = all.locks.size();
    }
    const std::span own = std::span(all.locks).subspan(begin);
    const auto same = std::ranges::find(own, request->wanted.key, &Wanted::key);
    if (same == own.end()) {
      if (own.size() == Trace::kMostLocks) return wrong("too many locks of one transaction");
      all.locks.push_back(request->wanted);
    } else if (request->wanted.mode == Mode::exclusive) {
      same->mode = Mode::exclusive;
    }
  }
  if (!lines.eof()) {
    ++number;
    return wrong(lines.bad() ? "cannot be read" : "too long");
  }
  if (transaction) all.ends.push_back(all.locks.size());
  return all;
}

}  // namespace lockbench::loadgen
