#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "loadgen/record/counter.h"

namespace lockbench::simulate {

/// The protected counters, kept twice: once without checks, and once where a write with an old
/// fencing number is refused. Counts the updates that each of them lost. For one thread.
class SpoiltCounter final : public loadgen::Counter {
 public:
  explicit SpoiltCounter(int keys) : Counter(1), values_(static_cast<std::size_t>(keys)) {}

  std::unique_ptr<loadgen::CounterSession> open(Env&) override {
    return std::make_unique<Session>(*this);
  }
  tl::expected<loadgen::CounterTotals, std::string> totals() override {
    return loadgen::CounterTotals{.lost = lost_};
  }

  std::uint64_t lost() const { return lost_; }
  std::uint64_t lost_fenced() const { return lost_fenced_; }

 private:
  struct Value {
    std::uint64_t plain = 0, fenced = 0, highest = 0;
  };

  class Session final : public loadgen::CounterSession {
   public:
    explicit Session(SpoiltCounter& counter) : counter_(counter) {}

    tl::expected<loadgen::Reading, std::string> read(
        int key, std::optional<std::uint64_t> fencing) override {
      Value& value = counter_.value(key);
      value.highest = std::max(value.highest, fencing.value_or(0));
      fenced_[key] = value.fenced;
      return loadgen::Reading{.value = value.plain};
    }

    loadgen::WriteResult write(int key, const loadgen::Reading& reading,
                               std::optional<std::uint64_t> fencing) override {
      Value& value = counter_.value(key);
      if (value.plain != reading.value) ++counter_.lost_;
      value.plain = reading.value + 1;
      const std::uint64_t seen = fenced_[key];
      fenced_.erase(key);
      if (fencing && *fencing < value.highest) return loadgen::WriteResult::accepted;
      if (value.fenced != seen) ++counter_.lost_fenced_;
      value.fenced = seen + 1;
      return loadgen::WriteResult::accepted;
    }

   private:
    SpoiltCounter& counter_;
    std::map<int, std::uint64_t> fenced_;  ///< as read, by key
  };

  Value& value(int key) { return values_[static_cast<std::size_t>(key)]; }

  std::vector<Value> values_;
  std::uint64_t lost_ = 0, lost_fenced_ = 0;
};

}  // namespace lockbench::simulate
