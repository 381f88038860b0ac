#pragma once

#include <array>
#include <list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "simulate/world.h"

namespace lockbench::simulate {

struct Wire;

/// The number of a region that --regions names. The error quotes it and lists them.
tl::expected<int, std::string> find_region(std::string_view name);
std::string_view region_name(int region);
/// Clients and servers are on one machine.
inline constexpr int kLocalRegion = 0;

enum class Way { to_server, to_client };

/// Between a client and a server, as a proxy is: faults of this way strike there. Detached from its
/// wires before it is destroyed.
class Relay {
 public:
  virtual ~Relay() = default;
  /// A connection is about to be opened; returns its number, from 1.
  virtual std::uint64_t opens(const std::shared_ptr<Wire>& wire) = 0;
  /// How much later a message comes; nothing: it is lost, or the relay has taken `arrive` to send
  /// it again.
  virtual std::optional<Duration> pass(Wire& wire, Way way, std::function<void()>& arrive) = 0;
};

/// Carries messages between clients and servers, as TCP does: in order within a connection, and a
/// lost packet comes later. Delays are drawn for each message.
class Network {
 public:
  /// `added`: to each round trip. `on_one_machine`: the delay of a message within a machine, if it
  /// is known.
  Network(World& world, Duration added,
          const std::optional<DurationDistribution>& on_one_machine = std::nullopt);

  /// Calls `arrive` when a message that leaves at `departs` has come through.
  void send(Wire& wire, Way way, TimePoint departs, std::function<void()> arrive);
  /// The delay of one message between these regions.
  Duration draw(int from, int to);

  void set_loss(double share) { loss_ = share; }
  /// From now on, to each round trip; negative to undo that.
  void add_delay(Duration each_round_trip) { added_ += each_round_trip; }
  /// Blocks a share of the pairs of client and server, in these directions; returns its number.
  int block(double share, bool to_servers, bool to_clients);
  /// What was sent meanwhile arrives soon: TCP sends it again.
  void unblock(int number);

 private:
  /// A message under way; it keeps its wire alive.
  struct Message {
    Wire* wire;
    Way way;
    std::function<void()> arrive;
  };
  struct Block {
    double share;
    bool ways[2];
    std::uint64_t salt;
    std::vector<Message> held{};
  };

  Block* block_of(const Wire& wire, Way way);
  /// Not before those that were sent earlier on the connection.
  void deliver(Message message, TimePoint earliest);

  World& world_;
  Duration added_;
  std::vector<Duration> on_one_machine_;  ///< draws of that delay; none: it is not known
  double loss_ = 0;
  int blocks_made_ = 0;
  std::map<int, Block> blocks_;
};

}  // namespace lockbench::simulate
