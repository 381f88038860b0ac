#include <memory>

#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"
#include "tests/fuzz/scripted_transport.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

using zookeeper::Request;

constexpr std::string_view kChroot = "/app";

void use(const zookeeper::Reply& reply) {
  static_cast<void>(zookeeper::sequence_of(reply.path));
  if (reply.children.empty()) return;
  static_cast<void>(zookeeper::place_among(reply.children, reply.children.front()));
}

/// Reads a packet as each possible kind.
void read_packet(std::string_view packet) {
  static_cast<void>(zookeeper::read_greeting(packet));
  {
    zookeeper::Reader reader(packet);
    if (!zookeeper::read_header(reader)) return;
    static_cast<void>(zookeeper::read_event(reader, kChroot));
  }
  using enum Request::Kind;
  for (const Request::Kind kind :
       {make, make_ephemeral, make_sequential, children, look, exists, remove}) {
    zookeeper::Reader reader(packet);
    static_cast<void>(zookeeper::read_header(reader));
    const Request request{.kind = kind, .path = "/lockbench/run/{1}"};
    if (const auto reply = zookeeper::read_reply(request, kChroot, reader)) use(*reply);
  }
}

void read_stream(std::string_view bytes) {
  zookeeper::Packets packets(std::make_unique<ScriptedTransport>(bytes));
  // Each receive() takes at least one byte, and each packet has at least four.
  for (std::size_t i = 0; i <= 2 * bytes.size() + 1; ++i) {
    const auto packet = packets.next();
    if (!packet) return;
    if (*packet) {
      read_packet(**packet);
    } else if (packets.receive(Duration::zero()) != Transport::Status::ok) {
      return;
    }
  }
  require(false);
}

void read_zookeeper(std::string_view bytes) {
  read_packet(bytes);
  read_stream(bytes);
  static_cast<void>(zookeeper::version_in(bytes));
  require(zookeeper::node_of_key(bytes).starts_with("/lockbench/"));
  static_cast<void>(zookeeper::sequence_of(bytes));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(zookeeper, lockbench::fuzz::read_zookeeper)
