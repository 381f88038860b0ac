#include <array>
#include <chrono>

#include "strategies/redis/client/cluster.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"
#include "tests/fuzz/scripted_transport.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

using namespace std::chrono_literals;

template <class T>
void read_as(const redis::Form<T>& form, const redis::Reply& reply) {
  static_cast<void>(form.read(reply));
  static_cast<void>(redis::describe_answer("GET", reply, form.expected));
}

void use(const redis::Reply& reply) {
  read_as(redis::kOk, reply);
  read_as(redis::kOkOrNil, reply);
  read_as(redis::kFlag, reply);
  read_as(redis::kCount, reply);
  read_as(redis::kText, reply);
  read_as(redis::kTextOrNil, reply);
  read_as(redis::kNilOrTimeLeft, reply);
  static_cast<void>(redis::read_push(reply));
  static_cast<void>(redis::info_field(reply.text, "role"));
  const HostPort asked{.host = "server", .port = 1};
  if (const auto to = redis::redirected_to(reply.text, asked)) require(!to->host.empty());
  const auto slots = redis::SlotMap::read(reply, asked);
  if (slots)
    require(slots->owner(redis::slot_of(reply.text)) == nullptr || !slots->primaries().empty());
}

/// A connection that logs in and asks until the server's bytes are used up.
void read_replies(std::string_view bytes) {
  ScriptedTransport transport(bytes);
  redis::ReplyReader reader;
  redis::Endpoint endpoint{.host = "server", .user = "user", .password = "secret", .database = 1};
  if (!redis::greet(endpoint, transport, reader, 1s, {}, nullptr)) return;
  const std::array<std::string_view, 2> command{"GET", "key"};
  // Each answer takes at least one byte.
  for (std::size_t i = 0; i <= bytes.size(); ++i) {
    const auto reply = redis::exchange_once(transport, reader, command, 1s, {});
    if (!reply) return;
    use(*reply);
  }
  require(false);
}

/// Without logging in, which few inputs get through.
void read_stream(std::string_view bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes);
  for (std::size_t i = 0; i <= bytes.size(); ++i) {
    const auto reply = reader.next();
    if (!reply || !*reply) return;
    use(**reply);
  }
  require(false);
}

void read_resp(std::string_view bytes) {
  read_stream(bytes);
  read_replies(bytes);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(resp, lockbench::fuzz::read_resp)
