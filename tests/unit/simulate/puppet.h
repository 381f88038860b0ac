#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulate/wire.h"
#include "tests/support/must.h"

namespace lockbench::simulate {

/// Keeps what it gets; a test answers for it.
struct PuppetServer final : Server {
  PuppetServer() : Server(0, kLocalRegion, "puppet") {}

  void accept(const std::shared_ptr<Wire>& wire) override {
    wires.push_back(wire);
    wire->accepted();
  }
  void arrive(const std::shared_ptr<Wire>& /*wire*/, std::string bytes) override { heard += bytes; }
  void closed(const std::shared_ptr<Wire>& /*wire*/) override {}

  std::vector<std::shared_ptr<Wire>> wires;  ///< in the order of their connections
  std::string heard;
};

/// Such a server, and a client's machine.
struct Stage {
  void pass(Duration time) { world.carrier().wait(nullptr, world.now() + time, {}); }

  World world{1, {}};
  Network network{world, {}};
  PuppetServer server;
  std::vector<Server*> servers{&server};
  Host host{world, 0, kLocalRegion, Clock(), {}};
};

}  // namespace lockbench::simulate
