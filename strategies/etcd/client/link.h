#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/etcd/client/connection.h"

// What a connection needs of gRPC, so that a simulation can take its place.
namespace lockbench::etcd {

using Message = google::protobuf::MessageLite;

/// Of one operation. A stop ends it at once.
struct Limits {
  std::stop_token stop;
  Duration longest = Duration::max();
};

/// A stream of messages in both directions, with one operation under way at a time. An operation
/// returns false if it failed, or was ended by its limits; the stream is then broken.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual bool begin(const Limits& limits) = 0;
  virtual bool write(const Message& request, const Limits& limits) = 0;
  /// Into response().
  virtual bool read(const Limits& limits) = 0;
  virtual const Message& response() const = 0;
  /// Ends the stream. If it had ended before, the status says why.
  virtual grpc::Status finish() = 0;
};

/// A connection to one member, used by one thread.
class Link {
 public:
  virtual ~Link() = default;
  /// Whether it still is one, as far as known without asking.
  virtual bool ready() = 0;
  /// Sends the request and waits for the response; both are of the method's types. `token`: of the
  /// login.
  virtual grpc::Status call(std::string_view method, const Message& request, Message& response,
                            const std::string& token, const Limits& limits) = 0;
  /// Of kWatch or kLeaseKeepAlive. The whole stream may take `longest`.
  virtual std::unique_ptr<Stream> make_stream(std::string_view method, const std::string& token,
                                              Duration longest) = 0;
};

/// Opens links: those of gRPC here, those of a simulation in another. A run's Services may provide
/// one. Many threads call open() at once.
class Links {
 public:
  struct Order {
    const HostPort& member;
    const Endpoint& endpoint;
    const Limits& limits;
    /// Finds out why there is no answer.
    bool probes = false;
    Env& env;
    /// The latest link's, kept so that reconnecting does not end and restart their thread.
    std::shared_ptr<Completions>& completions;
  };

  virtual ~Links() = default;
  /// The error says why there is none, without naming the member.
  virtual tl::expected<std::unique_ptr<Link>, std::string> open(const Order& order);

  /// That of real links.
  static Links& real();
};

/// What the status of a call says about its request.
enum class Verdict {
  done,
  absent,      ///< its object does not exist
  refused,     ///< it took no effect
  logged_out,  ///< refused: the token has expired, or users or roles were changed since the login
  late,        ///< the deadline has passed
  unknown,     ///< it may have taken effect
};
Verdict verdict_of(const grpc::Status& status);

}  // namespace lockbench::etcd
