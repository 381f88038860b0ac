#include "loadgen/run/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "results/tables/text.h"
#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

constexpr std::string_view kForm = "share=50%,keys=2500,move=10s";
constexpr Duration kShortestMove = std::chrono::milliseconds(1);

/// False if there is no such part, or its value is out of range.
bool set_part(HotSet& hot, std::string_view name, std::string_view value) {
  if (name == "share" && value.ends_with('%')) {
    value.remove_suffix(1);
    const auto percent = parse_number<double>(value);
    if (!percent || !(*percent > 0 && *percent <= 100)) return false;
    hot.share = *percent / 100;
    return true;
  }
  if (name == "keys") {
    const auto keys = parse_number<int>(value);
    hot.keys = keys.value_or(0);
    return hot.keys >= 1;
  }
  if (name != "move") return false;
  const auto move = parse_duration(value);
  if (!move || *move < kShortestMove) return false;
  hot.moves_every = *move;
  return true;
}

int uniform_below(int end, Random& random) { return static_cast<int>(draw_unit(random) * end); }

// Thirty years: keeps absurdly low rates within 64 bits.
constexpr long double kFarNanoseconds = 1e18L;

}  // namespace

Schedule::Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed,
                   const Share& share)
    : per_second_(per_second),
      arrival_(arrival),
      start_(start),
      share_(share),
      state_{.random = Random(seed)} {
  if (!(per_second > 0) || !std::isfinite(per_second)) {
    throw std::invalid_argument("a schedule's rate must be above 0 and finite");
  }
}

TimePoint Schedule::draw(State& state) const {
  const bool poisson = arrival_ == Arrival::poisson;
  long double gaps = 0;
  // Ends: of every `clients` starts in a row, a share takes at least one.
  bool taken = false;
  while (!taken) {
    if (poisson) state.elapsed_gaps += draw_exponential(state.random);
    gaps = poisson ? state.elapsed_gaps : static_cast<long double>(state.issued);
    taken = share_.takes(state.issued++);
  }
  // Counted from the start each time, so that rounding to nanoseconds does not add up.
  const long double nanoseconds = std::min(kFarNanoseconds, gaps * 1e9L / per_second_);
  return start_ + Duration(std::llround(nanoseconds));
}

TimePoint Schedule::next() {
  const std::scoped_lock lock(mutex_);
  return draw(state_);
}

bool Schedule::has_passed(TimePoint until) const {
  const std::scoped_lock lock(mutex_);
  State ahead = state_;
  return draw(ahead) >= until;
}

Schedule::Due Schedule::due_before(TimePoint until) {
  const TimePoint first = next();
  if (first >= until) return {};
  const Duration longest = until - first;
  const double own_rate = per_second_ * share_.count() / share_.clients;
  const long double gaps = static_cast<long double>(longest.count()) * own_rate / 1e9L;
  return {static_cast<std::uint64_t>(std::ceil(gaps)), longest};
}

void Meetings::expect(int lock, Event* event) {
  const std::scoped_lock guard(mutex_);
  called_.at(static_cast<std::size_t>(lock)).rival = event;
}

bool Meetings::begin(int lock, TimePoint now) {
  const std::scoped_lock guard(mutex_);
  if (under_way_ || static_cast<std::size_t>(lock) != turn_ || now < next_) return false;
  under_way_ = true;
  turn_ = (turn_ + 1) % called_.size();
  next_ = now + every_;
  return true;
}

void Meetings::call(int lock, TimePoint until) {
  const std::scoped_lock guard(mutex_);
  Called& called = called_.at(static_cast<std::size_t>(lock));
  called.until = until;
  if (called.rival != nullptr) called.rival->set();
}

void Meetings::end() {
  const std::scoped_lock guard(mutex_);
  under_way_ = false;
}

TimePoint Meetings::held_until(int lock) const {
  const std::scoped_lock guard(mutex_);
  return called_.at(static_cast<std::size_t>(lock)).until;
}

tl::expected<HotSet, std::string> HotSet::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return tl::unexpected(fmt::format("\"{}\": {}; a hot set is written as {}", text, why, kForm));
  };
  HotSet hot;
  for (const std::string& part : results::split_at_commas(text)) {
    const std::size_t equals = part.find('=');
    const bool set = equals != std::string::npos &&
                     set_part(hot, part.substr(0, equals), part.substr(equals + 1));
    if (!set) return wrong(fmt::format("\"{}\" is not a part of a hot set", part));
  }
  if (hot.share == 0 || hot.keys == 0) return wrong("the share and the keys are needed");
  return hot;
}

std::string HotSet::to_string() const {
  std::string text = fmt::format("share={:.12g}%,keys={}", share * 100, keys);
  if (moves_every) text += ",move=" + format_duration(*moves_every);
  return text;
}

KeyChooser::KeyChooser(int keys, double skew, std::optional<HotSet> hot) : keys_(keys), hot_(hot) {
  if (keys < 1 || !(skew >= 0) || !std::isfinite(skew)) {
    throw std::invalid_argument("keys must be at least 1, their skew at least 0 and finite");
  }
  if (hot && (hot->keys < 1 || hot->keys >= keys || skew > 0)) {
    throw std::invalid_argument("hot keys must be fewer than the keys, and without skew");
  }
  if (skew == 0) return;
  weights_.reserve(static_cast<std::size_t>(keys));
  double sum = 0;
  for (int key = 1; key <= keys; ++key) weights_.push_back(sum += std::pow(key, -skew));
}

int KeyChooser::pick(Random& random, Duration since_start) const {
  if (keys_ == 1) return 0;
  if (hot_) return pick_hot(random, since_start);
  if (weights_.empty()) return uniform_below(keys_, random);
  const double drawn = draw_unit(random) * weights_.back();
  const auto found = std::upper_bound(weights_.begin(), weights_.end(), drawn);
  // Rounding may carry the draw past the end.
  return std::min(static_cast<int>(found - weights_.begin()), keys_ - 1);
}

int KeyChooser::pick_hot(Random& random, Duration since_start) const {
  std::int64_t first = 0;
  if (hot_->moves_every) {
    const std::int64_t moves = since_start / *hot_->moves_every;
    first = moves % keys_ * hot_->keys % keys_;
  }
  const bool is_hot = draw_unit(random) < hot_->share;
  // Numbers count from the first hot key, round the end: first the hot keys, then the others.
  const int number = is_hot ? uniform_below(hot_->keys, random)
                            : hot_->keys + uniform_below(keys_ - hot_->keys, random);
  return static_cast<int>((first + number) % keys_);
}

tl::expected<std::unique_ptr<Demand>, std::string> Demand::make(const Workload& workload,
                                                                const Share& share) {
  const bool fits =
      workload.locks_per_section >= 1 && workload.locks_per_section <= workload.key_count();
  if (!workload.trace && !fits) {
    return tl::unexpected<std::string>(
        "a section takes at least one lock, and at most one per key");
  }
  std::unique_ptr<Demand> demand(new Demand(workload, share));
  if (!workload.trace) return demand;
  const std::string& path = workload.trace->path;
  const auto trace = Trace::read(path, &demand->trace_);
  if (!trace) return tl::unexpected(trace.error());
  // The file may have more transactions, as a share has only some of them.
  if (trace->keys != workload.trace->keys || trace->transactions < workload.trace->transactions) {
    return tl::unexpected(path + ": the file was changed");
  }
  return demand;
}

Demand::Demand(const Workload& workload, const Share& share)
    : workload_(workload),
      share_(share),
      keys_(workload.key_count(), workload.key_skew, workload.hot_set) {}

bool Demand::next(int client, Duration since_start, Random& random, Transaction& out) {
  if (!workload_.trace) {
    draw(client, since_start, random, out.locks);
  } else {
    std::uint64_t next = begun_++;
    // Ends: of every `clients` transactions in a row, a share takes at least one.
    while (next < trace_.ends.size() && !share_.takes(next)) next = begun_++;
    if (next >= trace_.ends.size()) return false;
    const auto locks = trace_.of(next);
    out.locks.assign(locks.begin(), locks.end());
  }
  out.hold = workload_.hold.draw(random);
  out.think = workload_.think.draw(random);
  return true;
}

void Demand::draw(int client, Duration since_start, Random& random,
                  std::vector<Wanted>& locks) const {
  // With a skew, most draws may give keys already taken.
  constexpr int kMostDraws = 16;
  const auto pick = [&] {
    return workload_.key_per_client ? client % workload_.key_count()
                                    : keys_.pick(random, since_start);
  };
  const auto taken = [&](int key) {
    return std::ranges::find(locks, key, &Wanted::key) != locks.end();
  };
  locks.clear();
  for (int i = 0; i < workload_.locks_per_section; ++i) {
    int key = pick();
    for (int draws = 1; draws < kMostDraws && taken(key); ++draws) key = pick();
    // Ends, as there are more keys than locks in a section.
    while (taken(key)) key = (key + 1) % workload_.key_count();
    const bool shared = workload_.shared_share > 0 && draw_unit(random) < workload_.shared_share;
    locks.push_back({key, shared ? Mode::shared : Mode::exclusive});
  }
}

}  // namespace lockbench::loadgen
