#include "strategies/etcd/client/link.h"
#include "strategies/etcd/client/messages.h"
#include "strategies/number.h"
#include "strategies/observed_lease.h"
#include "strategies/registry.h"

namespace lockbench::etcd {
namespace {

/// Keys on no lease of etcd's; their version is the revision of the latest write.
class Records : public VersionedStore {
 public:
  Records(const Endpoint& endpoint, const Timeouts& timeouts, Env& env, Links& links)
      : etcd_(endpoint, timeouts, env, links) {}

  StoreResult<void> connect() override { return etcd_.connect(); }
  const std::string& display() const override { return etcd_.display(); }

  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override {
    return etcd_.read(key, record_of(key), stop).map([](const std::optional<Key>& found) {
      return found ? std::optional(VersionedItem{found->value, std::to_string(found->changed)})
                   : std::nullopt;
    });
  }

  /// Without a TTL: the form that it is used for does not expire.
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override {
    const std::string record = record_of(put.key);
    const auto unchanged =
        put.over == nullptr
            ? absent(record)
            : changed_in(record, parse_number<std::int64_t>(put.over->version).value_or(0));
    const Txn txn{.conditions = {unchanged}, .then = {put_value(record, std::string(put.value))}};
    const auto result = etcd_.transact(put.key, txn, stop);
    if (!result) return tl::unexpected(result.error());
    return *result && (*result)->succeeded;
  }

 private:
  static std::string record_of(std::string_view key) { return std::string(key) + "/record"; }

  Connection etcd_;
};

const Registration etcd_observed_lease(observed(
    {.name = "etcd-observed-lease",
     .backend = "etcd",
     .summary = "A record on no lease: taken over after a TTL without a change, by the candidate's "
                "own clock",
     .source = "client-go's leaderelection, whose records the API server keeps in etcd",
     .libraries = {{"Go", "k8s.io/client-go/tools/leaderelection (through the API server)",
                    "LeaseDuration = {ttl}, RenewDeadline, RetryPeriod", Reentry::none, true}},
     .make = make_lease_on<ObservedLease, Records, parse_endpoint, Links>,
     .key_suffixes = {"", "/record"}},
    {"Range key/record", "Txn put key/record if it has not changed"}));

}  // namespace
}  // namespace lockbench::etcd
