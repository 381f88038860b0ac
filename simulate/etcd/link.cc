#include "simulate/etcd/link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/etcd/client/messages.h"

namespace lockbench::simulate {
namespace {

/// call, code, and the sizes of text and body.
using Head = std::array<std::uint32_t, 4>;

TimePoint end_after(Duration longest) {
  return longest == Duration::max() ? TimePoint::max() : Carrier::current().now() + longest;
}

/// The calls of one connection. Lives as long as its link or one of its streams.
class Calls {
 public:
  explicit Calls(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  std::uint32_t begin() {
    answers_.try_emplace(++latest_);
    return latest_;
  }
  void end(std::uint32_t call) { answers_.erase(call); }

  bool send(const Frame& frame) {
    return transport_->send(frame.bytes(), {}) == Transport::Status::ok;
  }

  /// Into the response. The status says why there is none.
  grpc::Status receive(std::uint32_t call, etcd::Message& response, TimePoint until,
                       const std::stop_token& stop) {
    std::deque<Frame>& answers = answers_.at(call);
    // Bounded by the time.
    while (answers.empty()) {
      const TimePoint now = Carrier::current().now();
      if (now >= until) return {grpc::StatusCode::DEADLINE_EXCEEDED, "deadline exceeded"};
      // A transport adds this to its time.
      constexpr Duration kLongest = std::chrono::hours(1);
      const auto status = take(std::min(until - now, kLongest), stop);
      if (status == Transport::Status::stopped) return grpc::Status::CANCELLED;
      if (status == Transport::Status::closed) {
        return {grpc::StatusCode::UNAVAILABLE, transport_->why_closed()};
      }
    }
    const Frame frame = std::move(answers.front());
    answers.pop_front();
    if (frame.code != 0) return {static_cast<grpc::StatusCode>(frame.code), frame.text};
    if (response.ParseFromString(frame.body)) return {};
    return {grpc::StatusCode::INTERNAL, "the answer cannot be read"};
  }

  bool open() {
    auto status = Transport::Status::ok;
    while (status == Transport::Status::ok) status = take(Duration::zero(), {});
    return status != Transport::Status::closed;
  }

 private:
  /// What has arrived for calls that are over is dropped.
  Transport::Status take(Duration longest, const std::stop_token& stop) {
    std::array<char, 4096> buffer{};
    const auto [status, bytes] = transport_->receive(buffer, longest, stop);
    if (status != Transport::Status::ok) return status;
    input_.append(buffer.data(), bytes);
    while (auto frame = Frame::take(input_)) {
      const auto call = answers_.find(frame->call);
      if (call != answers_.end()) call->second.push_back(*std::move(frame));
    }
    return status;
  }

  const std::unique_ptr<Transport> transport_;
  std::string input_;
  std::map<std::uint32_t, std::deque<Frame>> answers_;  ///< to calls that are not over
  std::uint32_t latest_ = 0;
};

template <class Response>
class SimulatedStream final : public etcd::Stream {
 public:
  SimulatedStream(std::shared_ptr<Calls> calls, std::string_view method, Duration longest)
      : calls_(std::move(calls)),
        call_(calls_->begin()),
        method_(method),
        until_(end_after(longest)) {}
  SimulatedStream(const SimulatedStream&) = delete;
  SimulatedStream& operator=(const SimulatedStream&) = delete;
  ~SimulatedStream() override {
    calls_->send({.call = call_});
    calls_->end(call_);
  }

  /// The first request begins it.
  bool begin(const etcd::Limits& limits) override { return !limits.stop.stop_requested(); }
  bool write(const etcd::Message& request, const etcd::Limits& /*limits*/) override {
    if (calls_->send({.call = call_, .text = method_, .body = request.SerializeAsString()})) {
      return true;
    }
    status_ = {grpc::StatusCode::UNAVAILABLE, "the connection was closed"};
    return false;
  }
  bool read(const etcd::Limits& limits) override {
    status_ =
        calls_->receive(call_, response_, std::min(until_, end_after(limits.longest)), limits.stop);
    return status_.ok();
  }
  const etcd::Message& response() const override { return response_; }
  grpc::Status finish() override { return status_; }

 private:
  const std::shared_ptr<Calls> calls_;
  const std::uint32_t call_;
  const std::string method_;
  const TimePoint until_;
  Response response_;
  grpc::Status status_;
};

class SimulatedLink final : public etcd::Link {
 public:
  explicit SimulatedLink(std::unique_ptr<Transport> transport)
      : calls_(std::make_shared<Calls>(std::move(transport))) {}

  bool ready() override { return calls_->open(); }
  grpc::Status call(std::string_view method, const etcd::Message& request, etcd::Message& response,
                    const std::string& /*token*/, const etcd::Limits& limits) override {
    const TimePoint until = end_after(limits.longest);
    const std::uint32_t number = calls_->begin();
    grpc::Status status(grpc::StatusCode::UNAVAILABLE, "the connection was closed");
    if (calls_->send(
            {.call = number, .text = std::string(method), .body = request.SerializeAsString()})) {
      status = calls_->receive(number, response, until, limits.stop);
    }
    calls_->end(number);
    return status;
  }
  std::unique_ptr<etcd::Stream> make_stream(std::string_view method, const std::string& /*token*/,
                                            Duration longest) override {
    using Watch = SimulatedStream<etcdserverpb::WatchResponse>;
    using Renewals = SimulatedStream<etcdserverpb::LeaseKeepAliveResponse>;
    if (method == etcd::kWatch.name) return std::make_unique<Watch>(calls_, method, longest);
    return std::make_unique<Renewals>(calls_, method, longest);
  }

 private:
  const std::shared_ptr<Calls> calls_;
};

}  // namespace

std::string Frame::bytes() const {
  const Head head{call, code, static_cast<std::uint32_t>(text.size()),
                  static_cast<std::uint32_t>(body.size())};
  std::string all(sizeof(head), '\0');
  std::memcpy(all.data(), head.data(), sizeof(head));
  return all.append(text).append(body);
}

std::optional<Frame> Frame::take(std::string& input) {
  Head head{};
  if (input.size() < sizeof(head)) return std::nullopt;
  std::memcpy(head.data(), input.data(), sizeof(head));
  const std::size_t text = head[2], body = head[3], size = sizeof(head) + text + body;
  if (input.size() < size) return std::nullopt;
  Frame frame{.call = head[0],
              .code = head[1],
              .text = input.substr(sizeof(head), text),
              .body = input.substr(sizeof(head) + text, body)};
  input.erase(0, size);
  return frame;
}

tl::expected<std::unique_ptr<etcd::Link>, std::string> SimulatedLinks::open(const Order& order) {
  const Duration longest = order.limits.longest;
  // A stop ends a wait at once.
  const Timeouts timeouts(longest, Duration::zero());
  auto connecting =
      dialer_->begin({.host = order.member.host, .port = order.member.port}, timeouts, nullptr);
  if (!connecting) return tl::unexpected(connecting.error());
  auto transport = (*connecting)->get(longest, order.limits.stop);
  if (!transport) return tl::unexpected(transport.error());
  if (*transport == nullptr) return tl::unexpected((*connecting)->too_late(longest));
  return std::make_unique<SimulatedLink>(*std::move(transport));
}

}  // namespace lockbench::simulate
