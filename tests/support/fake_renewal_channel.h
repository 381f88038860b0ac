#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "strategies/renewal.h"
#include "tests/support/sim_env.h"

namespace lockbench {

/// A store that answers renewals as told, on simulated time. For one thread.
class FakeRenewalStore {
 public:
  struct Asked {
    std::string key;
    Duration ttl{};
    TimePoint at{};
  };

  explicit FakeRenewalStore(SimClock& clock) : clock_(clock) {}

  std::unique_ptr<RenewalChannel> connect() { return std::make_unique<Channel>(*this); }

  /// The answer to each renewal from now on.
  void answer_with(RenewalAnswer answer) { answer_ = answer; }
  void set_round_trip(Duration round_trip) { round_trip_ = round_trip; }
  /// Called when a batch has arrived, before it is answered.
  void on_flush(std::function<void()> action) { on_flush_ = std::move(action); }
  /// The renewals so far, in order.
  const std::vector<Asked>& asked() const { return asked_; }
  int batches() const { return batches_; }

 private:
  class Channel : public RenewalChannel {
   public:
    explicit Channel(FakeRenewalStore& store) : store_(store) {}

    void queue(std::string_view key, std::string_view, Duration ttl) override {
      store_.asked_.push_back({std::string(key), ttl, store_.clock_.now()});
      ++queued_;
    }
    void flush(const std::stop_token&) override {
      store_.clock_.advance(store_.round_trip_);
      if (store_.on_flush_) store_.on_flush_();
      if (queued_ > 0) ++store_.batches_;
      queued_ = 0;
    }
    RenewalAnswer answer(const std::stop_token&) override { return store_.answer_; }
    std::string failure() const override { return "told to fail"; }

   private:
    FakeRenewalStore& store_;
    int queued_ = 0;
  };

  SimClock& clock_;
  RenewalAnswer answer_ = RenewalAnswer::renewed;
  Duration round_trip_{};
  std::function<void()> on_flush_;
  std::vector<Asked> asked_;
  int batches_ = 0;
};

/// Runs a scheduler on simulated time.
inline void run_until(TimePoint end, RenewalScheduler& scheduler, SimClock& clock) {
  constexpr int kMost = 100'000;
  for (int i = 0; i < kMost; ++i) {
    const TimePoint next = scheduler.run_due();
    if (next > end) break;
    clock.advance_to(std::max(next, clock.now()));
  }
  if (clock.now() < end) clock.advance_to(end);
}

}  // namespace lockbench
