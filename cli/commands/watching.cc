#include "cli/commands/watching.h"

#include <utility>

namespace lockbench::cli {

Watching::Watching(std::vector<std::unique_ptr<watch::Source>> sources,
                   watch::LedgerOptions options, watch::Families families, Console& console)
    : ledger_(options, std::move(families)), console_(console), sources_(std::move(sources)) {}

tl::expected<void, std::string> Watching::reach(const std::stop_token& stop) {
  for (const auto& source : sources_) {
    if (auto reached = source->reach(stop); !reached) return reached;
  }
  return {};
}

void Watching::begin() {
  ledger_.begin(BootClock::now());
  for (const auto& source : sources_) {
    const auto failed = [this, &source](const std::string& why) {
      console_.warn("a watch ended: " + why);
      ledger_.blind(source->endpoint(), TimePoint::clock::now(), why);
    };
    auto started = Thread::start(
        [this, &source](const std::stop_token& stop) { source->run(ledger_, stop); }, failed);
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
  for (watch::SourcePicture& shown : picture.sources) {
    for (const auto& source : sources_) {
      if (source->endpoint() == shown.facts.endpoint) shown.commands = source->commands();
    }
  }
  return picture;
}

}  // namespace lockbench::cli
