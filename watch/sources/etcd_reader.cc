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

struct EtcdReader::Stream {
  using Request = etcdserverpb::WatchRequest;
  using Response = etcdserverpb::WatchResponse;

  explicit Stream(std::shared_ptr<etcd::Completions> its_completions)
      : completions(std::move(its_completions)) {}

  /// gRPC writes to `response` until it has ended.
  void begin_read() {
    reading.emplace(*completions);
    stream->Read(&response, reading->tag());
  }

  const std::shared_ptr<etcd::Completions> completions;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream;
  Response response;
  std::optional<etcd::Completion> reading;
};

EtcdReader::EtcdReader(etcd::Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : Connection(std::move(endpoint), timeouts, env) {}
EtcdReader::~EtcdReader() { close_stream(); }

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

void EtcdReader::close_stream() noexcept {
  if (!stream_) return;
  stream_->context.TryCancel();
  if (stream_->stream) {
    if (stream_->reading) stream_->reading->succeeds();
    grpc::Status status;
    stream_->completions->run([&](void* tag) { stream_->stream->Finish(&status, tag); });
  }
  stream_.reset();
}

tl::unexpected<StoreError> EtcdReader::ended(const std::string& why) {
  close_stream();
  return fail(StoreError::Kind::unanswered, "a watch ended: " + why);
}

StoreResult<void> EtcdReader::watch(const std::vector<std::string>& prefixes, std::int64_t from,
                                    const std::stop_token& stop) {
  close_stream();
  if (auto connected = connect(stop); !connected) return connected;
  stream_ = std::make_unique<Stream>(channel()->completions);
  Stream& made = *stream_;
  if (!token().empty()) made.context.AddMetadata("token", token());
  const etcd::StopCallback on_stop(stop, etcd::CancelOnStop{made.context});
  const CommandInfo info = info_of({"Watch", {}, stop});
  env().before_command(info);
  bool open = made.completions->run([&](void* tag) {
    made.stream = channel()->watch->AsyncWatch(&made.context, &made.completions->queue(), tag);
  });
  for (const std::string& prefix : prefixes) {
    Stream::Request request;
    etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
    create.set_range_end(prefix.empty() ? std::string(1, '\0') : etcd::end_of_prefix(prefix));
    create.set_start_revision(from);
    open = open && made.completions->run([&](void* tag) { made.stream->Write(request, tag); });
  }
  env().after_command(info, open ? CommandEnd::answered : CommandEnd::lost);
  if (!open) return ended("it could not be begun");
  made.begin_read();
  return {};
}

StoreResult<std::vector<EtcdChange>> EtcdReader::next(Duration longest) {
  if (!stream_) return fail(StoreError::Kind::not_sent, "no watch is open");
  Stream& open = *stream_;
  if (!open.reading->ends_within(longest)) return std::vector<EtcdChange>();
  const bool read = open.reading->succeeds();
  open.reading.reset();
  if (!read) {
    // The stream has ended, and says why.
    grpc::Status status;
    open.completions->run([&](void* tag) { open.stream->Finish(&status, tag); });
    if (etcd::wants_another_token(status)) forget_token();
    open.stream.reset();
    return ended(printable(status.error_message()));
  }
  if (open.response.canceled()) {
    const bool compacted = open.response.compact_revision() > 0;
    return ended(compacted ? "its revisions are compacted"
                           : printable(open.response.cancel_reason()));
  }
  std::vector<EtcdChange> changes;
  for (const auto& event : open.response.events()) {
    changes.push_back({.deleted = event.type() == etcdserverpb::WatchResponse::Event::DELETE,
                       .entry = entry_of(event.kv())});
  }
  open.begin_read();
  return changes;
}

}  // namespace lockbench::watch
