#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "watch/ledger.h"

namespace lockbench::watch {

using namespace std::chrono_literals;

inline const std::string script_server = "127.0.0.1:1";

/// A source that plays a script at given times.
class LedgerTest : public testing::Test {
 protected:
  /// Begins anew, as a source with such eyes.
  void watch(Accuracy accuracy, LedgerOptions options = {.most_locks = 100}) {
    options.salt = "1";
    ledger_ = std::make_unique<Ledger>(options);
    ledger_->facts(
        {.store = "redis", .endpoint = script_server, .way = "script", .accuracy = accuracy});
    ledger_->sees(script_server, begin_);
  }
  Sighting free(Duration at, std::string lock = "lock:a") const {
    return {.lock = std::move(lock), .at = begin_ + at, .shape = Shape::token, .changes = 1};
  }
  Sighting held(Duration at, std::string owner, Duration ttl = 10s,
                std::string lock = "lock:a") const {
    Sighting sighting = free(at, std::move(lock));
    sighting.holders = {{.owner = std::move(owner)}};
    if (ttl > 0s) sighting.ttl_left = ttl;
    return sighting;
  }
  Sighting for_ever(Duration at, std::string owner, std::string lock = "lock:a") const {
    Sighting sighting = held(at, std::move(owner), 0s, std::move(lock));
    sighting.no_ttl = true;
    return sighting;
  }
  static Sighting changes(Sighting sighting, std::uint64_t number) {
    sighting.changes = number;
    return sighting;
  }
  static Sighting unchanged(Sighting sighting) { return changes(std::move(sighting), 0); }
  static Sighting late(Sighting sighting, std::uint64_t number = 9) {
    sighting.late = true;
    return changes(std::move(sighting), number);
  }
  static Sighting ended(Sighting sighting, Ending how) {
    sighting.ended = how;
    return sighting;
  }
  static Sighting shaped(Sighting sighting, Shape shape) {
    sighting.shape = shape;
    return sighting;
  }
  static Sighting waited_for(Sighting sighting, std::uint64_t by) {
    sighting.waiters = by;
    return sighting;
  }

  void see(Sighting sighting) { ledger_->seen(script_server, std::move(sighting)); }
  Picture picture(Duration at = 60s) { return ledger_->read(begin_ + at); }
  FamilyPicture figures(Duration at = 60s) {
    const Picture all = picture(at);
    return all.families.empty() ? FamilyPicture() : all.families.front();
  }
  static const Finding* finding(const Picture& all, std::string_view kind) {
    const auto found = std::find_if(all.findings.begin(), all.findings.end(),
                                    [&](const Finding& one) { return one.kind == kind; });
    return found == all.findings.end() ? nullptr : &*found;
  }

  const TimePoint begin_ = TimePoint(1000s);
  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>(LedgerOptions{.salt = "1"});
};

class ExactLedgerTest : public LedgerTest {
 protected:
  ExactLedgerTest() { watch(Accuracy::exact); }
};

}  // namespace lockbench::watch
