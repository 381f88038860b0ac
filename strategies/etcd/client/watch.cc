#include "strategies/etcd/client/watch.h"

#include <utility>

#include "strategies/etcd/client/answers.h"
#include "strategies/etcd/client/channel.h"

namespace lockbench::etcd {

struct WatchStream::Stream {
  using Request = etcdserverpb::WatchRequest;
  using Response = etcdserverpb::WatchResponse;

  explicit Stream(std::shared_ptr<Completions> its_completions)
      : completions(std::move(its_completions)) {}

  /// gRPC writes to `response` until it has ended.
  void begin_read() {
    reading.emplace(*completions);
    stream->Read(&response, reading->tag());
  }

  const std::shared_ptr<Completions> completions;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream;
  Response response;
  std::optional<Completion> reading;
};

WatchStream::WatchStream(Connection& connection) : connection_(connection) {}
WatchStream::~WatchStream() { close(); }

void WatchStream::close() noexcept {
  if (!stream_) return;
  stream_->context.TryCancel();
  if (stream_->stream) {
    if (stream_->reading) stream_->reading->succeeds();
    grpc::Status status;
    stream_->completions->run([&](void* tag) { stream_->stream->Finish(&status, tag); });
  }
  stream_.reset();
}

tl::unexpected<StoreError> WatchStream::ended(const std::string& why) {
  close();
  return connection_.fail(StoreError::Kind::unanswered, "a watch ended: " + why);
}

StoreResult<void> WatchStream::open(const std::vector<std::string>& prefixes, std::int64_t from,
                                    const std::stop_token& stop) {
  close();
  if (auto connected = connection_.connect(stop); !connected) return connected;
  stream_ = std::make_unique<Stream>(connection_.channel_->completions);
  Stream& made = *stream_;
  if (!connection_.token_.empty()) made.context.AddMetadata("token", connection_.token_);
  const StopCallback on_stop(stop, CancelOnStop{made.context});
  const CommandInfo info = connection_.info_of({"Watch", {}, stop});
  connection_.env_.before_command(info);
  bool open = made.completions->run([&](void* tag) {
    made.stream =
        connection_.channel_->watch->AsyncWatch(&made.context, &made.completions->queue(), tag);
  });
  for (const std::string& prefix : prefixes) {
    Stream::Request request;
    etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
    create.set_range_end(prefix.empty() ? std::string(1, '\0') : end_of_prefix(prefix));
    create.set_start_revision(from);
    open = open && made.completions->run([&](void* tag) { made.stream->Write(request, tag); });
  }
  connection_.env_.after_command(info, open ? CommandEnd::answered : CommandEnd::lost);
  if (!open) return ended("it could not be begun");
  made.begin_read();
  return {};
}

StoreResult<std::vector<Change>> WatchStream::next(Duration longest) {
  if (!stream_) return connection_.fail(StoreError::Kind::not_sent, "no watch is open");
  Stream& open = *stream_;
  if (!open.reading->ends_within(longest)) return std::vector<Change>();
  const bool read = open.reading->succeeds();
  open.reading.reset();
  if (!read) {
    // The stream has ended, and says why.
    grpc::Status status;
    open.completions->run([&](void* tag) { open.stream->Finish(&status, tag); });
    if (wants_another_token(status)) connection_.token_.clear();
    open.stream.reset();
    return ended(printable(status.error_message()));
  }
  if (open.response.canceled()) {
    const bool compacted = open.response.compact_revision() > 0;
    return ended(compacted ? "its revisions are compacted"
                           : printable(open.response.cancel_reason()));
  }
  std::vector<Change> changes;
  for (const auto& event : open.response.events()) {
    changes.push_back({.deleted = event.type() == etcdserverpb::WatchResponse::Event::DELETE,
                       .entry = entry_of(event.kv())});
  }
  open.begin_read();
  return changes;
}

}  // namespace lockbench::etcd
