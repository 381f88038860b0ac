#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "strategies/conditional_lease.h"

namespace lockbench {

/// What the candidates of a lease by observation read, in JSON with the names of client-go's
/// annotation. Times are not in it: nobody's clock but the
/// reader's own matters.
struct LeaseRecord {
  std::string holder;             ///< the token of a grant; empty: released
  Duration duration{};            ///< for which a candidate must watch it unchanged; at least 1 ms
  std::uint64_t renewals = 0;     ///< of this holder
  std::uint64_t transitions = 0;  ///< grants so far
};
/// Nothing if it is not a record.
std::optional<LeaseRecord> parse_record(std::string_view text);
std::string to_text(const LeaseRecord& record);

/// A lease by observation: client-go's leaderelection (resource lock and LeaderElectionConfig), and
/// DynamoDB's lock client. The holder writes its record again every retry period (the renewal
/// timer), and counts the lease as lost after the renew deadline without success. A candidate takes
/// the lease over once it has seen the same record for the whole duration that the record states,
/// counted by its own clock from the first time that it read it. So a shift of any wall clock
/// changes nothing; only a clock that runs faster than the deadline allows does: TTL to deadline,
/// 3:2 by default. A release writes a record without a holder, which the next candidate takes at
/// once. The number of transitions grows with each grant as long as nobody deletes the record:
/// a resource that rejects lower numbers than the highest it has seen is fenced by it.
class ObservedLease : public ConditionalLease {
 public:
  ObservedLease(const Context& context, MakeStore make);

 protected:
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override;
  Duration trusted(Duration kept) const override;
  /// The default, scaled down to a short TTL.
  WaitPolicy waiting(const AcquireRequest& request) const override;

 private:
  /// A record, and since when it has not changed, by this client's clock.
  struct Sight {
    std::string version;
    TimePoint since{};
  };

  /// Whether the record may be taken over now.
  bool is_over(const LeaseRecord& record, const std::string& version, const std::string& key);

  const WaitPolicy waiting_;
  const std::optional<Duration> renew_deadline_;
  std::map<std::string, Sight> seen_;  ///< by key
};

/// client-go's leader election tries every 2 s, with a jitter of up to 1.2 times as much, if the
/// lease lasts 15 s (RetryPeriod, JitterFactor); here at most that often, and proportionally more
/// often with a shorter TTL.
inline constexpr RenewalTiming kObservedRenewal{.first_share = 2.0 / 15, .share = 2.0 / 15};
inline constexpr WaitPolicy kObservedWaiting{.kind = WaitKind::random,
                                             .min = std::chrono::seconds(2),
                                             .max = std::chrono::milliseconds(4400)};

/// The traits of all of them.
Traits observed_traits();
/// Completes a descriptor by them, by the hazards that follow, and by the commands, which are the
/// same for grant, renewal and release. Without libraries, those on stores that are not measured.
Descriptor observed(Descriptor lease, std::vector<std::string_view> commands);

}  // namespace lockbench
