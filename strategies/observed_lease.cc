#include "strategies/observed_lease.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace lockbench {
namespace {

using Json = nlohmann::json;

constexpr double kMilliseconds = 1000, kShortestRecord = 0.001;
/// client-go's, for a released lease. A candidate does not wait for it.
constexpr Duration kReleased = std::chrono::seconds(1);
/// Keys whose records a client remembers; then it begins to watch again.
constexpr std::size_t kMaxSeen = 1024;

std::optional<std::uint64_t> count_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

constexpr LeaseForm kRecordForm{
    .name = "record",
    .expires = false,
    .held_by =
        [](const std::string& value, std::string_view token) {
          const auto record = parse_record(value);
          return record && record->holder == token;
        },
    .renewed =
        [](const std::string& value, Duration ttl) {
          LeaseRecord record = parse_record(value).value_or(LeaseRecord());
          record.duration = ttl;
          ++record.renewals;
          return to_text(record);
        },
    .released =
        [](const std::string& value) {
          const LeaseRecord record = parse_record(value).value_or(LeaseRecord());
          return to_text({.holder = {}, .duration = kReleased, .transitions = record.transitions});
        }};

}  // namespace

std::optional<LeaseRecord> parse_record(std::string_view text) {
  const Json record = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return std::nullopt;
  const auto holder = record.find("holderIdentity");
  const auto lasts = record.find("leaseDurationSeconds");
  const auto renewals = count_in(record, "renewals");
  const auto transitions = count_in(record, "leaderTransitions");
  if (holder == record.end() || !holder->is_string() || lasts == record.end() ||
      !lasts->is_number() || !renewals || !transitions) {
    return std::nullopt;
  }
  // Nobody would have to watch a shorter one.
  const double duration = lasts->get<double>();
  if (!(duration >= kShortestRecord && duration <= seconds(kLongestDuration))) return std::nullopt;
  return LeaseRecord{.holder = holder->get<std::string>(),
                     .duration = std::chrono::milliseconds(std::llround(duration * kMilliseconds)),
                     .renewals = *renewals,
                     .transitions = *transitions};
}

std::string to_text(const LeaseRecord& record) {
  const auto milliseconds = static_cast<double>(ceil_milliseconds(record.duration));
  return Json{{"holderIdentity", record.holder},
              {"leaseDurationSeconds", std::max(kShortestRecord, milliseconds / kMilliseconds)},
              {"renewals", record.renewals},
              {"leaderTransitions", record.transitions}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ObservedLease::ObservedLease(const Context& context, MakeStore make)
    : ConditionalLease(context, std::move(make), kRecordForm),
      waiting_(context.waiting),
      renew_deadline_(context.options.renew_deadline) {}

StoreResult<bool> ObservedLease::take(const AcquireRequest& request, Lease& lease) {
  const auto item = store().get(lease.key, request.stop);
  if (!item) return tl::unexpected(item.error());
  LeaseRecord next{.holder = lease.token, .duration = request.ttl, .transitions = 1};
  if (*item) {
    const auto record = parse_record((*item)->value);
    if (!record) {
      return failure_at(store().display(), StoreError::Kind::rejected,
                        "the key holds no record of a lease: " + (*item)->value.substr(0, 100));
    }
    if (!is_over(*record, (*item)->version, lease.key)) return false;
    next.transitions = record->transitions + 1;
  }
  auto granted = grant(request, to_text(next), *item ? &**item : nullptr, lease);
  if (granted && *granted) {
    lease.fencing = next.transitions;
    seen_.erase(lease.key);
  }
  return granted;
}

bool ObservedLease::is_over(const LeaseRecord& record, const std::string& version,
                            const std::string& key) {
  if (record.holder.empty()) return true;
  // After the answer: the holder wrote it before.
  const TimePoint now = env().now();
  if (seen_.size() >= kMaxSeen && !seen_.contains(key)) seen_.clear();
  Sight& sight = seen_[key];
  if (sight.version != version) sight = {.version = version, .since = now};
  return now - sight.since >= record.duration;
}

Duration ObservedLease::trusted(Duration kept) const {
  return std::min(kept, renew_deadline_.value_or(kept * 2 / 3));
}

WaitPolicy ObservedLease::waiting(const AcquireRequest& request) const {
  if (waiting_ != kObservedWaiting) return waiting_;
  const Duration period = std::min<Duration>(waiting_.min, kObservedRenewal.next(request.ttl));
  return WaitPolicy::random(period, period * 22 / 10);
}

Traits observed_traits() {
  return {.release_check = OwnerCheck::atomic,
          .renew_check = OwnerCheck::atomic,
          .observed = true,
          .fencing = true,
          .renews = kObservedRenewal,
          .renewable = true,
          .waiting = kObservedWaiting,
          .waiting_choices = {WaitKind::poll, WaitKind::backoff, WaitKind::random}};
}

Descriptor observed(Descriptor lease, std::vector<std::string_view> commands) {
  lease.acquire_commands = lease.release_commands = commands;
  lease.renew_commands = std::move(commands);
  lease.traits = observed_traits();
  if (lease.libraries.empty()) {
    lease.libraries = {{"Go", "k8s.io/client-go/tools/leaderelection (on a Lease of Kubernetes)",
                        "LeaseDuration = {ttl}, RenewDeadline, RetryPeriod", Reentry::none, true},
                       {"Java", "amazon-dynamodb-lock-client (on DynamoDB)",
                        "leaseDuration = {ttl}, heartbeatPeriod", Reentry::none, true}};
  }
  return with_known_hazards(std::move(lease));
}

}  // namespace lockbench
