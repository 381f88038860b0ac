#include "strategies/renewal.h"

#include <algorithm>

#include "strategies/services.h"

namespace lockbench {
namespace {

// Large enough for few round trips, small enough not to hold up the server or a release.
constexpr std::size_t kBatch = 256;
// A renewal with TTL 0 would end the lease.
constexpr Duration kLeastTtl = std::chrono::milliseconds(1);
// At most a hundredth of the time between two renewals. With 10,000 locks and a TTL of 10 s, a
// batch has 15 of them instead of one, and saves their system calls on both sides.
constexpr Duration kTogether = std::chrono::milliseconds(5);
constexpr Duration kShortestPause = std::chrono::milliseconds(5);
constexpr Duration kLongestPause = std::chrono::seconds(1);

/// The pause before a failed channel is used again; short enough to renew a lease in time.
Duration pause_after(int failures, Duration ttl) {
  const Duration doubled = kShortestPause * (1 << std::min(failures, 10));
  return std::min({doubled, std::max(ttl / 20, kShortestPause), kLongestPause});
}

TimePoint latest_end(const RenewalOrder& order) {
  return order.cap ? order.granted_at + *order.cap : TimePoint::max();
}

/// How much before its time a renewal goes with those that are due.
Duration early(const RenewalOrder& order) {
  return std::min(kTogether, order.timing.next(order.ttl) / 100);
}

/// Whether the validity has reached the cap, or the cap has passed.
bool nothing_to_add(const RenewalOrder& order, TimePoint now) {
  if (!order.cap) return false;
  return latest_end(order) - now < kLeastTtl ||
         latest_end(order) - order.drift <= order.state->valid_until();
}

}  // namespace

void Renewal::stop() noexcept {
  const std::scoped_lock lock(scheduler_.mutex_);
  stopped_ = true;
  if (place_) scheduler_.due_.erase(*place_);
  place_.reset();
}

Duration renewal_timeout(Duration useful, Duration command_timeout) {
  constexpr Duration kShortest = std::chrono::milliseconds(10);
  if (useful >= command_timeout) return command_timeout;
  Duration timeout = kShortest;
  while (2 * timeout <= useful) timeout *= 2;
  return std::min(timeout, command_timeout);
}

RenewalScheduler& renewal_scheduler(Services& services) {
  return services.get_or_make<RenewalScheduler>([&] {
    return std::make_shared<RenewalScheduler>(make_service_env(services),
                                              services.get<StrategyObserver>());
  });
}

void RenewalScheduler::provide_channel(
    const std::string& name, const std::function<std::unique_ptr<RenewalChannel>(Env&)>& make) {
  const std::scoped_lock lock(mutex_);
  Channel& channel = channels_[name];
  if (!channel.store) channel.store = make(*env_);
}

std::shared_ptr<Renewal> RenewalScheduler::keep(RenewalOrder order) {
  const TimePoint due = order.granted_at + order.timing.first(order.ttl);
  auto renewal = std::make_shared<Renewal>(*this, std::move(order));
  const std::scoped_lock lock(mutex_);
  put(*renewal, due);
  if (drive_ == Drive::own_task && !task_) start_task();
  return renewal;
}

void RenewalScheduler::put(Renewal& renewal, TimePoint due) {
  renewal.place_ = due_.emplace(due, renewal.weak_from_this());
  if (due < asleep_until_) earlier_->set();
}

void RenewalScheduler::start_task() {
  const auto report = [this](const std::string& why) {
    env_->report("leases are not renewed any more: " + why);
  };
  auto started =
      Carrier::current().start([this](const std::stop_token& stop) { drive(stop); }, report);
  if (!started) return report(started.error());  // the next lease tries again
  task_ = *std::move(started);
}

void RenewalScheduler::drive(const std::stop_token& stop) {
  auto event = env_->make_event();
  {
    const std::scoped_lock lock(mutex_);
    earlier_ = std::move(event);
  }
  while (!stop.stop_requested()) {
    run_due(stop);
    TimePoint until;
    {
      const std::scoped_lock lock(mutex_);
      until = asleep_until_ = next_due();
    }
    env_->wait(earlier_.get(), until, stop);
    const std::scoped_lock lock(mutex_);
    asleep_until_ = TimePoint::min();
  }
}

TimePoint RenewalScheduler::run_due(const std::stop_token& stop) {
  // Renewals that become due meanwhile wait for the next call, so that this one ends.
  const TimePoint due_by = env_->now();
  for (auto batch = take_due(due_by); !batch.empty() && !stop.stop_requested();
       batch = take_due(due_by)) {
    // One that failed may be waited for until its timeout.
    const std::size_t healthy = put_healthy_first(batch);
    send(std::span(batch).first(healthy), stop);
    send(std::span(batch).subspan(healthy), stop);
  }
  const std::scoped_lock lock(mutex_);
  return next_due();
}

std::vector<RenewalScheduler::Flight> RenewalScheduler::take_due(TimePoint due_by) {
  std::vector<Flight> batch;
  const TimePoint now = env_->now();
  // Declared before the lock, to be destroyed after it: the last reference to a Renewal locks the
  // mutex.
  std::vector<std::shared_ptr<Renewal>> done;
  const std::scoped_lock lock(mutex_);
  for (auto next = due_.begin();
       next != due_.end() && next->first <= due_by + kTogether && batch.size() < kBatch;) {
    const auto place = next++;
    const auto renewal = place->second.lock();
    if (!renewal) continue;  // its destructor waits for the mutex and removes it
    // One that waits for its store to recover does not go early: its pause would be none.
    const bool waits = renewal->first_due_ != TimePoint::max();
    const Duration before = batch.empty() || waits ? Duration::zero() : early(renewal->order_);
    if (place->first > due_by + before) {
      done.push_back(renewal);
      break;
    }
    const TimePoint due = std::min(place->first, renewal->first_due_);
    due_.erase(place);
    renewal->place_.reset();
    const RenewalOrder& order = renewal->order_;
    if (order.ends_with_validity && !order.state->valid_at(now)) {
      order.state->mark_lost(now);
      done.push_back(renewal);
    } else if (nothing_to_add(order, now)) {
      done.push_back(renewal);
    } else if (const TimePoint later = usable_at(order, now); later > now) {
      renewal->first_due_ = due;
      put(*renewal, later);
      done.push_back(renewal);
    } else {
      batch.push_back({.renewal = renewal, .due = due});
    }
  }
  return batch;
}

TimePoint RenewalScheduler::usable_at(const RenewalOrder& order, TimePoint now) const {
  std::vector<TimePoint> times;
  for (const std::string& name : order.channels) times.push_back(channels_.at(name).down_until);
  std::sort(times.begin(), times.end());
  return std::max(now, times.at(static_cast<std::size_t>(order.quorum - 1)));
}

std::size_t RenewalScheduler::put_healthy_first(std::vector<Flight>& batch) const {
  const auto failed = [&](const std::string& name) { return channels_.at(name).failures > 0; };
  const std::scoped_lock lock(mutex_);
  const auto others = std::stable_partition(batch.begin(), batch.end(), [&](const Flight& flight) {
    return std::ranges::none_of(flight.renewal->order_.channels, failed);
  });
  return static_cast<std::size_t>(others - batch.begin());
}

void RenewalScheduler::send(std::span<Flight> batch, const std::stop_token& stop) {
  // In the order of first use, as the order of addresses would differ from run to run.
  std::vector<std::pair<Channel*, std::vector<Flight*>>> asked;
  const auto asked_of = [&](Channel& channel) -> std::vector<Flight*>& {
    const auto found =
        std::ranges::find(asked, &channel, [](const auto& one) { return one.first; });
    return found == asked.end() ? asked.emplace_back(&channel, std::vector<Flight*>()).second
                                : found->second;
  };
  const TimePoint now = env_->now();
  {
    const std::scoped_lock lock(mutex_);
    for (Flight& flight : batch) {
      for (const std::string& name : flight.renewal->order_.channels) {
        Channel& channel = channels_.at(name);
        if (channel.down_until <= now) asked_of(channel).push_back(&flight);
      }
    }
  }
  for (auto& [channel, flights] : asked) {
    // Released while an earlier channel connected.
    leave_out_stopped(flights);
    if (flights.empty()) continue;
    for (Flight* flight : flights) {
      const RenewalOrder& order = flight->renewal->order_;
      const TimePoint sent_at = env_->now();
      if (flight->sent_at == TimePoint::max()) {
        flight->sent_at = sent_at;
        flight->ttl = std::max(std::min(order.ttl, latest_end(order) - sent_at), kLeastTtl);
      }
      channel->store->queue(order.key, order.token, flight->ttl);
      ++flight->asked;
    }
    channel->store->flush(stop);
  }
  for (auto& [channel, flights] : asked) {
    if (!flights.empty()) receive(*channel, flights, stop);
  }
  for (const Flight& flight : batch) settle(flight);
}

void RenewalScheduler::leave_out_stopped(std::vector<Flight*>& flights) const {
  const std::scoped_lock lock(mutex_);
  std::erase_if(flights, [](const Flight* flight) { return flight->renewal->stopped_; });
}

void RenewalScheduler::receive(Channel& channel, std::vector<Flight*>& asked,
                               const std::stop_token& stop) {
  bool failed = false;
  for (Flight* flight : asked) {
    const RenewalAnswer answer = channel.store->answer(stop);
    flight->answered_at = env_->now();
    flight->renewed += answer == RenewalAnswer::renewed ? 1 : 0;
    flight->refused += answer == RenewalAnswer::not_owner ? 1 : 0;
    if (answer != RenewalAnswer::failed) continue;
    failed = true;
    flight->reason = channel.store->failure();
  }
  const Duration ttl = asked.front()->renewal->order_.ttl;
  const std::scoped_lock lock(mutex_);
  channel.failures = failed ? channel.failures + 1 : 0;
  if (failed) channel.down_until = env_->now() + pause_after(channel.failures, ttl);
}

void RenewalScheduler::settle(const Flight& flight) {
  Renewal& renewal = *flight.renewal;
  const RenewalOrder& order = renewal.order_;
  const auto all = static_cast<int>(order.channels.size());
  RenewalReport report{.commands = flight.asked,
                       .slip = flight.sent_at - flight.due,
                       .duration = flight.answered_at - flight.sent_at,
                       .margin = order.state->valid_until() - flight.answered_at,
                       .reason = flight.reason};
  {
    const std::scoped_lock lock(mutex_);
    // Released meanwhile: the answer no longer matters.
    if (renewal.stopped_) return;
    if (flight.renewed >= order.quorum) {
      report.outcome = RenewalAnswer::renewed;
      renewal.first_due_ = TimePoint::max();
      order.state->extend(flight.sent_at + flight.ttl - order.drift, flight.sent_at);
      // One that went early with others keeps its turn.
      put(renewal, std::max(flight.sent_at, flight.due) + order.timing.next(order.ttl));
    } else if (flight.refused > all - order.quorum) {
      report.outcome = RenewalAnswer::not_owner;
      order.state->mark_lost(flight.answered_at);
    } else {
      renewal.first_due_ = flight.due;
      const RenewalTiming& timing = order.timing;
      put(renewal, timing.retries_soon
                       ? flight.answered_at + pause_after(0, order.ttl)
                       : std::max(flight.answered_at, flight.sent_at + timing.next(order.ttl)));
    }
  }
  observer_.on_renewal(report);
}

}  // namespace lockbench
