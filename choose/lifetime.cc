#include "choose/lifetime.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using results::human_count;
using results::human_seconds;

/// A TTL without renewal, as a multiple of the work's p99. It leaves room for work beyond the p99
/// and for a client that pauses.
constexpr int kMargin = 3;
/// The shortest TTL with renewal every third of it, which leaves time for two more attempts.
constexpr Duration kRenewedTtl = 3s;
/// The same, as a multiple of the longest measured delay of a renewal.
constexpr int kLatenesses = 10;
/// Ratio of p99 to p50 above which renewal is better than a long TTL.
constexpr int kVariesMuch = 10;
constexpr int kCapMargin = 20;

std::string outcome_at(std::string_view scenario, const Descriptor& strategy,
                       const Evidence& evidence) {
  const hazards::Scenario* found = hazards::find_scenario(scenario);
  if (found == nullptr) return "lockbench list";
  const FaultReport report = evidence.report(*found, strategy);
  return fmt::format("{}: {}; {}", scenario, report.outcome, where_shown(report, strategy));
}

bool falls_to(std::string_view scenario, const Descriptor& strategy, const Evidence& evidence) {
  const hazards::Scenario* found = hazards::find_scenario(scenario);
  return found != nullptr && evidence.report(*found, strategy).harmful;
}

bool varies_much(const Requirements& requirements) {
  const auto& p50 = requirements.work_p50;
  const auto& p99 = requirements.work_p99;
  return p50 && p99 && *p50 > Duration::zero() && *p99 >= kVariesMuch * *p50;
}

/// Rounded up to whole seconds if the store counts in seconds, or if it is long.
Duration rounded(Duration ttl, const Traits& traits) {
  if (traits.ttl_in_seconds || ttl > 10s) return std::chrono::ceil<std::chrono::seconds>(ttl);
  return 100ms * ((ttl + 100ms - 1ns) / 100ms);
}

/// The point that held as many locks as there are clients, or the next larger one.
const results::RenewalPoint* point_for(const std::vector<results::RenewalPoint>& points,
                                       std::uint64_t clients) {
  const results::RenewalPoint* found = nullptr;
  for (const results::RenewalPoint& point : points) {
    if (point.mode != "batched" || point.held < clients || point.slip.count == 0) continue;
    if (found == nullptr || point.held < found->held) found = &point;
  }
  return found;
}

Setting renewed_ttl(const Descriptor& strategy, const Requirements& requirements,
                    const Evidence& evidence) {
  Duration ttl = kRenewedTtl;
  std::string lateness =
      "the files do not say how late renewals come: lockbench renewal measures it";
  const auto measured = evidence.renewal();
  const auto clients = static_cast<std::uint64_t>(requirements.clients.value_or(1));
  if (const auto* point = point_for(measured.points, clients)) {
    const double worst = std::min(point->slip.max, 3600.0);
    ttl = std::max(ttl, std::chrono::duration_cast<Duration>(
                            std::chrono::duration<double>(kLatenesses * worst)));
    lateness = fmt::format("with {} locks held, renewals were at most {} late ({})",
                           human_count(static_cast<double>(point->held)),
                           human_seconds(point->slip.max), measured.source);
  }
  ttl = rounded(ttl, strategy.traits);
  return {"--ttl", format_duration(ttl),
          fmt::format("work of any length is covered by {}, so that the TTL is short: after a "
                      "crash nobody gets the lock for up to {}, and a holder that stands still for "
                      "longer has lost it",
                      strategy.traits.expiry == Expiry::session ? "the session" : "renewal",
                      format_duration(ttl)),
          fmt::format("{}; {}", lateness, outcome_at("crash-holding", strategy, evidence))};
}

Setting outlasting_ttl(const Descriptor& strategy, const Requirements& requirements,
                       const Evidence& evidence) {
  const std::string shown = outcome_at("overrun-holding", strategy, evidence);
  const auto work = requirements.work_p99 ? requirements.work_p99 : requirements.work_p50;
  if (!work) {
    return {"--ttl", "10s", "lockbench's default; --work-time-p99 gives a TTL that fits the work",
            shown};
  }
  const Duration ttl = std::max<Duration>(rounded(kMargin * *work, strategy.traits), 100ms);
  return {"--ttl", format_duration(ttl),
          fmt::format("{} × the work's {} of {}: work that takes longer loses the lock, and a "
                      "crash blocks everybody for this long",
                      kMargin, requirements.work_p99 ? "p99" : "p50", format_duration(*work)),
          shown};
}

Setting cap(const Descriptor& strategy, const Requirements& requirements, Duration ttl,
            const Evidence& evidence) {
  const Duration longest = std::chrono::ceil<std::chrono::seconds>(
      std::max<Duration>(kCapMargin * *requirements.work_p99, 3 * ttl));
  return {"--renew-cap", format_duration(longest),
          fmt::format("{} × the work's p99: without a cap a holder that hangs blocks everybody for "
                      "ever",
                      kCapMargin),
          fmt::format("{}; {}", outcome_at("runaway-holder", strategy, evidence),
                      outcome_at("runaway-holder-capped", strategy, evidence))};
}

}  // namespace

Lifetime lifetime_of(const Descriptor& strategy, const Requirements& requirements,
                     const Evidence& evidence) {
  const Traits& traits = strategy.traits;
  Lifetime lifetime;
  if (traits.expiry == Expiry::none) {
    lifetime.settings.push_back({"--ttl", "",
                                 "it never expires: after a crash, somebody must remove it",
                                 outcome_at("crash-holding", strategy, evidence)});
    return lifetime;
  }
  const bool by_itself = traits.renews || traits.expiry == Expiry::session;
  const bool renewed = by_itself || (traits.renewable && varies_much(requirements));
  lifetime.settings.push_back(renewed ? renewed_ttl(strategy, requirements, evidence)
                                      : outlasting_ttl(strategy, requirements, evidence));
  lifetime.ttl = parse_duration(lifetime.settings.back().value).value_or(10s);
  if (renewed && !by_itself) {
    lifetime.settings.push_back(
        {"--renew", "auto", "every third of the TTL: the work time varies too much for a fixed TTL",
         outcome_at("overrun-holding", strategy, evidence)});
  }
  if (renewed && traits.renewable && requirements.work_p99 &&
      falls_to("runaway-holder", strategy, evidence)) {
    lifetime.settings.push_back(cap(strategy, requirements, lifetime.ttl, evidence));
  }
  return lifetime;
}

}  // namespace lockbench::choose
