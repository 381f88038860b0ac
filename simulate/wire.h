#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simulate/network.h"
#include "simulate/redis/model.h"

namespace lockbench::simulate {

class RedisNode;

/// A command's words in one piece of memory.
class CommandWords {
 public:
  explicit CommandWords(Words words) {
    ends_.reserve(words.size());
    for (const std::string_view word : words) {
      bytes_ += word;
      ends_.push_back(bytes_.size());
    }
  }

  /// Into reused memory; valid as long as this object.
  void read(std::vector<std::string_view>& words) const {
    words.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      words.emplace_back(bytes_.data() + begin, end - begin);
      begin = end;
    }
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

/// A TCP connection between a client and a Redis server, with the state of both ends. Messages
/// under way keep it alive.
struct Wire : std::enable_shared_from_this<Wire> {
  enum class State { connecting, open, broken };

  Wire(Host& its_host, RedisNode& its_node, int its_server, int its_region, std::uint32_t database)
      : host(its_host), node(its_node), server(its_server), region(its_region) {
    session.database = database;
  }

  Host& host;
  RedisNode& node;
  const int server;             ///< its number
  const int region;             ///< of the server
  TimePoint last_arrival[2]{};  ///< of the messages to the server, and to the client

  // The client's end.
  State state = State::connecting;
  std::deque<Reply> arrived;
  std::string why;  ///< it is broken
  Event* waiting = nullptr;

  /// Messages from the server, or the end of the connection.
  void deliver(std::vector<Reply> replies);
  void opened();
  void broke(std::string reason);
  /// The client closes it. What it has sent still arrives.
  void close();

  // The server's end.
  bool accepted = false;
  RedisModel::Session session;
  std::deque<CommandWords> inbox;
  std::uint64_t blocked = 0;      ///< number of its wait at the server; 0: none
  std::int64_t write_offset = 0;  ///< of its last write
  int wanted_replicas = 0;        ///< of its WAIT
  std::vector<ListName> lists;    ///< of its BLPOP
  std::set<std::string> channels;

 private:
  void wake() {
    if (waiting != nullptr) waiting->set();
    if (host.polling != nullptr) host.polling->set();
  }
};

}  // namespace lockbench::simulate
