#include "loadgen/cluster/in_process_peers.h"

#include <utility>

namespace lockbench::loadgen::cluster {

class InProcessPeers : public Peers {
 public:
  using Boxes = std::shared_ptr<std::vector<std::unique_ptr<InProcessRanks::Box>>>;
  InProcessPeers(Boxes boxes, int rank) : boxes_(std::move(boxes)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(boxes_->size()); }

  void post(int to, Kind kind, std::string body) override {
    InProcessRanks::Box& box = *boxes_->at(static_cast<std::size_t>(to));
    if (own().dead || box.dead) return;
    const std::scoped_lock lock(box.mutex);
    box.messages.push_back({rank_, kind, std::move(body)});
  }

  std::optional<Message> poll() override {
    InProcessRanks::Box& box = own();
    const std::scoped_lock lock(box.mutex);
    if (box.dead || box.messages.empty()) return std::nullopt;
    Message message = std::move(box.messages.front());
    box.messages.pop_front();
    return message;
  }

  void close(bool /*together*/) override {}

 private:
  InProcessRanks::Box& own() const { return *boxes_->at(static_cast<std::size_t>(rank_)); }

  const Boxes boxes_;
  const int rank_;
};

InProcessRanks::InProcessRanks(int size)
    : boxes_(std::make_shared<std::vector<std::unique_ptr<Box>>>()) {
  for (int i = 0; i < size; ++i) boxes_->push_back(std::make_unique<Box>());
}

std::unique_ptr<Peers> InProcessRanks::rank(int rank) const {
  return std::make_unique<InProcessPeers>(boxes_, rank);
}

void InProcessRanks::kill(int rank) { boxes_->at(static_cast<std::size_t>(rank))->dead = true; }

}  // namespace lockbench::loadgen::cluster
