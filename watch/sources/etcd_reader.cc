#include "watch/sources/etcd_reader.h"

#include <algorithm>
#include <utility>

#include "strategies/etcd/client/channel.h"

namespace lockbench::watch {
namespace {

using Kv = etcdserverpb::KV::Stub;
using Leases = etcdserverpb::Lease::Stub;

EtcdEntry entry_of(const etcdserverpb::KeyValue& found) {
  return {.name = found.key(),
          .value = found.value(),
          .created = found.create_revision(),
          .modified = found.mod_revision(),
          .lease = found.lease()};
}

}  // namespace

struct EtcdReader::Changes
    : public etcd::Stream<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse> {
  using Stream::Stream;
};

EtcdReader::EtcdReader(etcd::Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : Connection(std::move(endpoint), timeouts, env) {}
EtcdReader::~EtcdReader() = default;

StoreResult<EtcdPage> EtcdReader::read(const std::string& prefix, const std::string& from,
                                       std::int64_t limit, std::int64_t revision,
                                       const std::stop_token& stop) {
  etcdserverpb::RangeRequest request;
  // The smallest key, and the end of all keys.
  request.set_key(from.empty() ? std::string(1, '\0') : from);
  request.set_range_end(prefix.empty() ? std::string(1, '\0') : etcd::end_of_prefix(prefix));
  request.set_limit(limit);
  request.set_revision(revision);
  etcdserverpb::RangeResponse response;
  const auto done =
      call({"Range", prefix, stop}, send_by(&Channel::kv, &Kv::AsyncRange, request, response));
  if (!done) return tl::unexpected(done.error());
  EtcdPage page{.revision = response.header().revision(), .entries = {}, .more = response.more()};
  for (const etcdserverpb::KeyValue& found : response.kvs()) {
    page.entries.push_back(entry_of(found));
  }
  return page;
}

StoreResult<std::optional<EtcdLife>> EtcdReader::life_of(etcd::LeaseId lease,
                                                         const std::stop_token& stop) {
  etcdserverpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseTimeToLiveResponse response;
  const auto done =
      call({"LeaseTimeToLive", {}, stop},
           send_by(&Channel::lease, &Leases::AsyncLeaseTimeToLive, request, response));
  if (!done) return tl::unexpected(done.error());
  if (!*done || response.ttl() < 0) return std::optional<EtcdLife>();
  const auto seconds_of = [](std::int64_t count) {
    return std::chrono::seconds(std::clamp<std::int64_t>(count, 0, ceil_seconds(kLongestDuration)));
  };
  return EtcdLife{.left = seconds_of(response.ttl()), .granted = seconds_of(response.grantedttl())};
}

tl::unexpected<StoreError> EtcdReader::ended(const std::string& why) {
  changes_.reset();
  return fail(StoreError::Kind::unanswered, "a watch ended: " + why);
}

StoreResult<void> EtcdReader::watch(const std::vector<std::string>& prefixes, std::int64_t from,
                                    const std::stop_token& stop) {
  changes_.reset();
  if (auto connected = connect(stop); !connected) return connected;
  changes_ = std::make_unique<Changes>(*channel(), token());
  Changes& stream = *changes_;
  const CommandInfo info = info_of({"Watch", {}, stop});
  env().before_command(info);
  bool open = stream.begin(*channel()->watch, &etcdserverpb::Watch::Stub::AsyncWatch, stop);
  for (const std::string& prefix : prefixes) {
    etcdserverpb::WatchRequest request;
    etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
    create.set_range_end(prefix.empty() ? std::string(1, '\0') : etcd::end_of_prefix(prefix));
    create.set_start_revision(from);
    open = open && stream.write(request, stop);
  }
  env().after_command(info, open ? CommandEnd::answered : CommandEnd::lost);
  if (!open) return ended("it could not be begun");
  stream.begin_read();
  return {};
}

StoreResult<std::vector<EtcdChange>> EtcdReader::next(Duration longest) {
  constexpr Duration kToSayWhy = std::chrono::seconds(1);
  if (!changes_) return fail(StoreError::Kind::not_sent, "no watch is open");
  Changes& stream = *changes_;
  if (!stream.has_read(longest)) return std::vector<EtcdChange>();
  if (!stream.end_read()) {
    const grpc::Status status = stream.finish(kToSayWhy);
    if (etcd::verdict_of(status) == etcd::Verdict::logged_out) forget_token();
    return ended(printable(status.error_message()));
  }
  const etcdserverpb::WatchResponse& response = stream.response();
  if (response.canceled()) {
    return ended(response.compact_revision() > 0 ? "its revisions are compacted"
                                                 : printable(response.cancel_reason()));
  }
  std::vector<EtcdChange> changes;
  for (const auto& event : response.events()) {
    changes.push_back({.deleted = event.type() == etcdserverpb::WatchResponse::Event::DELETE,
                       .entry = entry_of(event.kv())});
  }
  stream.begin_read();
  return changes;
}

}  // namespace lockbench::watch
