#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"

/// The text protocol of a NATS server, and the answers of its streams (JetStream). The bytes may be
/// broken. Errors are printable.
namespace lockbench::nats {

struct Message {
  enum class Kind { info, ping, pong, ok, error, payload };
  Kind kind = Kind::ok;
  std::string subject{};  ///< of a payload
  std::string reply{};    ///< of a payload: the subject for an answer; empty: none
  std::string headers{};  ///< of a payload, "NATS/1.0 503\r\n"; empty: none
  std::string text{};     ///< of an INFO: its JSON; of an error: the reason; or the payload
  std::size_t size = 0;
};

/// The first message of the received bytes; nothing if it is not complete.
tl::expected<std::optional<Message>, std::string> parse_message(std::string_view bytes);

/// What a server says of itself.
struct ServerInfo {
  std::string version;
  std::string id;    ///< changes when the server restarts
  bool tls = false;  ///< the connection goes on with TLS, if the client wants to
  bool requires_tls = false;
};
std::optional<ServerInfo> parse_info(std::string_view json);

/// Whether these headers of a payload mark a key as deleted.
bool is_deletion(std::string_view headers);

/// What a consumer of a stream says of a message that it delivers.
struct Delivery {
  std::uint64_t sequence = 0;  ///< of the message
  WallTime stored_at{};        ///< by the server's clock
  std::uint64_t pending = 0;   ///< messages that it has still to send
};
/// Reads it from the payload's subject for an answer; nothing if that is no consumer's.
std::optional<Delivery> parse_delivery(std::string_view reply);

/// An error of JetStream, by its number (err_code).
enum class Refusal : std::uint32_t {
  none = 0,
  no_message = 10037,
  stream_exists = 10058,  ///< with another configuration
  no_stream = 10059,
  subjects_overlap = 10065,  ///< with another stream's, or with the same one's that is being made
  changed = 10071,           ///< the subject's latest message is not the expected one
};

/// The answer to any request to JetStream; what it does not tell is missing.
struct Answer {
  Refusal refusal = Refusal::none;
  std::string why{};  ///< of a refusal

  std::string stream;  ///< that has stored a message
  /// Of the message that was stored or asked for; of a stream: of its latest one.
  std::uint64_t sequence = 0;
  std::string subject;  ///< of the message asked for
  std::optional<std::string> value{};
  bool deleted = false;         ///< the message marks a key as deleted
  std::string configuration{};  ///< of a stream, in JSON
  Duration max_age{};           ///< of its messages; Duration::max(): they stay
  bool is_made = false;         ///< the stream: it says when it was created
  std::uint64_t purged = 0;     ///< how many messages were removed
  std::uint64_t pending = 0;    ///< messages that a new consumer sends first

  struct Stream {
    std::string name;
    std::string last_used;  ///< in UTC: "2026-11-30T13:01:06.302396105Z"
  };
  std::vector<Stream> streams{};
  std::uint64_t all_streams = 0;  ///< how many there are
};
tl::expected<Answer, std::string> parse_answer(std::string_view json);

/// Where a key is kept.
struct Place {
  std::string stream;   ///< "KV_lockbench-20261121T012530Z-4f3a9c"
  std::string subject;  ///< of its messages
};

/// `expires`: keys have the TTL of their bucket. A run has one bucket for these, and one for
/// others. Outside a run, a hash tag has one too, as the TTLs of unrelated locks may differ.
Place place_of(std::string_view key, bool expires);

/// The run id, or the other name, in the name of a bucket's stream; empty for other streams.
std::string_view run_of_stream(std::string_view stream);

}  // namespace lockbench::nats
