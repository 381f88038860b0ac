#include "cli/commands/watching.h"

#include <fmt/format.h>

#include <utility>

namespace lockbench::cli {

class Watching::Relay : public watch::Sink {
 public:
  explicit Relay(watch::Sink& sink) : sink_(sink) {}

  void facts(const watch::SourceFacts& facts) override {
    {
      const std::scoped_lock lock(mutex_);
      endpoints_.insert(facts.endpoint);
    }
    sink_.facts(facts);
  }
  void seen(const std::string& endpoint, watch::Sighting sighting) override {
    sink_.seen(endpoint, std::move(sighting));
  }
  void proposed(const std::string& endpoint, std::string pattern, watch::Shape shape) override {
    sink_.proposed(endpoint, std::move(pattern), shape);
  }
  void blind(const std::string& endpoint, TimePoint at, std::string reason) override {
    sink_.blind(endpoint, at, std::move(reason));
  }
  void sees(const std::string& endpoint, TimePoint at) override { sink_.sees(endpoint, at); }
  void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) override {
    sink_.missed(endpoint, changes, std::move(reason));
  }

  /// All of its thread's failure.
  void give_up(const std::string& why) {
    for (const std::string& endpoint : endpoints()) blind(endpoint, TimePoint::clock::now(), why);
  }
  std::set<std::string> endpoints() const {
    const std::scoped_lock lock(mutex_);
    return endpoints_;
  }

 private:
  watch::Sink& sink_;
  mutable std::mutex mutex_;
  std::set<std::string> endpoints_;
};

Watching::Watching(std::vector<std::unique_ptr<watch::Source>> sources,
                   watch::LedgerOptions options, watch::Families families, Console& console)
    : ledger_(options, std::move(families)), console_(console), sources_(std::move(sources)) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    relays_.push_back(std::make_unique<Relay>(ledger_));
  }
}

Watching::~Watching() { end(); }

tl::expected<void, std::string> Watching::reach(const std::stop_token& stop) {
  for (const auto& source : sources_) {
    if (auto reached = source->reach(stop); !reached) return reached;
  }
  return {};
}

void Watching::begin() {
  ledger_.begin(BootClock::now());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    watch::Source& source = *sources_[i];
    Relay& relay = *relays_[i];
    const auto failed = [this, &relay](const std::string& why) {
      console_.warn("a watch ended: " + why);
      relay.give_up(why);
    };
    auto started = Thread::start(
        [&source, &relay](const std::stop_token& stop) { source.run(relay, stop); }, failed);
    if (started) {
      threads_.push_back(*std::move(started));
    } else {
      failed(started.error());
    }
  }
}

void Watching::end() { threads_.clear(); }

watch::Picture Watching::read(TimePoint now) {
  watch::Picture picture = ledger_.read(now);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::set<std::string> endpoints = relays_[i]->endpoints();
    for (watch::SourcePicture& source : picture.sources) {
      if (!endpoints.contains(source.facts.endpoint)) continue;
      source.commands = sources_[i]->commands();  // of all its servers: it counts them together
      break;
    }
  }
  return picture;
}

}  // namespace lockbench::cli
