#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/cluster/link.h"

namespace lockbench::loadgen::cluster {

/// Ranks within one process. Each may be on a thread of its own.
class InProcessRanks {
 public:
  explicit InProcessRanks(int size) {
    for (int i = 0; i < size; ++i) boxes_->push_back(std::make_unique<Box>());
  }

  /// Those of one rank; may outlive this.
  std::unique_ptr<Peers> rank(int rank) const { return std::make_unique<Own>(boxes_, rank); }
  /// From now on it neither sends nor receives.
  void kill(int rank) { boxes_->at(static_cast<std::size_t>(rank))->dead = true; }

 private:
  struct Box {
    std::mutex mutex;
    std::deque<Message> messages;
    std::atomic<bool> dead{false};
  };
  using Boxes = std::shared_ptr<std::vector<std::unique_ptr<Box>>>;

  class Own : public Peers {
   public:
    Own(Boxes boxes, int rank) : boxes_(std::move(boxes)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(boxes_->size()); }

    void post(int to, Kind kind, std::string body) override {
      Box& box = *boxes_->at(static_cast<std::size_t>(to));
      if (own().dead || box.dead) return;
      const std::scoped_lock lock(box.mutex);
      box.messages.push_back({rank_, kind, std::move(body)});
    }

    std::optional<Message> poll() override {
      Box& box = own();
      const std::scoped_lock lock(box.mutex);
      if (box.dead || box.messages.empty()) return std::nullopt;
      Message message = std::move(box.messages.front());
      box.messages.pop_front();
      return message;
    }

    void close(bool /*together*/) override {}

   private:
    Box& own() const { return *boxes_->at(static_cast<std::size_t>(rank_)); }

    const Boxes boxes_;
    const int rank_;
  };

  Boxes boxes_ = std::make_shared<std::vector<std::unique_ptr<Box>>>();
};

}  // namespace lockbench::loadgen::cluster
