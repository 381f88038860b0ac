#include "strategies/memcached/lock.h"

#include "strategies/endpoints.h"
#include "strategies/memcached/client/item_ttl.h"
#include "strategies/waiting/retry.h"

namespace lockbench::memcached {

AddLock::AddLock(const Context& context)
    : env_(context.env),
      waiting_(context.waiting),
      memcached_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(),
                 context.env) {}

AcquireResult AddLock::acquire(const AcquireRequest& request) {
  return retry_with_token(
      request, env_, waiting_,
      [&](const AcquireRequest& once, Lease& lease) { return add(once, lease); },
      [&](const Lease& lease, const std::stop_token& stop) { return take_back(lease, stop); });
}

StoreResult<bool> AddLock::add(const AcquireRequest& request, Lease& lease) {
  const auto expiry = ItemTtl::of(request.ttl);
  if (!expiry) return tl::unexpected(expiry.error());
  const TimePoint asked_at = env_.now();
  auto added = memcached_.add(lease.key, lease.token, expiry->asked, request.stop);
  if (added && *added) {
    lease.state = std::make_shared<LeaseState>(asked_at + expiry->kept, asked_at);
  }
  return added;
}

}  // namespace lockbench::memcached
