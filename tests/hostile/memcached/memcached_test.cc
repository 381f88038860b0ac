// Servers that give wrong answers, at each point of every lock on memcached.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/hostile_life.h"
#include "tests/support/memcached_replies.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The items shared by all connections to one server.
struct MemcachedItems {
  struct Item {
    std::string value;
    int version = 0;
  };
  std::map<std::string, Item> items;
  int versions = 0;
};

std::vector<std::string> words_of(std::string_view request) {
  std::istringstream line{std::string(request.substr(0, request.find("\r\n")))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

/// The parts of memcached that the locks use.
class MemcachedSpeaker : public Speaker {
 public:
  explicit MemcachedSpeaker(std::shared_ptr<MemcachedItems> items) : items_(std::move(items)) {}

  std::size_t request_length(std::string_view received) override {
    const std::size_t end = received.find("\r\n");
    if (end == std::string_view::npos) return 0;
    const auto words = words_of(received);
    std::size_t length = end + 2;
    if (words.size() >= 5) length += std::stoul(words[4]) + 2;
    return received.size() < length ? 0 : length;
  }

  std::string answer(std::string_view request) override {
    const auto words = words_of(request);
    if (words.empty()) return "ERROR\r\n";
    if (words[0] == "version") return "VERSION 1.6.18\r\n";
    return words.size() < 2 ? "ERROR\r\n" : change(words, request);
  }

  bool is_prelude(std::string_view request) const override {
    return request.starts_with("version");
  }

 private:
  std::string change(const std::vector<std::string>& words, std::string_view request) {
    auto& all = items_->items;
    const std::string &name = words[0], &key = words[1];
    const auto found = all.find(key);
    const bool there = found != all.end();
    if (name == "add") return there ? "NOT_STORED\r\n" : store(words, request);
    if (name == "gets") return there ? value_of(*found) : "END\r\n";
    if (name == "cas") {
      if (!there) return "NOT_FOUND\r\n";
      if (found->second.version != std::stoi(words.at(5))) return "EXISTS\r\n";
      return store(words, request);
    }
    if (name == "delete") return all.erase(key) > 0 ? "DELETED\r\n" : "NOT_FOUND\r\n";
    if (name == "touch") return there ? "TOUCHED\r\n" : "NOT_FOUND\r\n";
    return "ERROR\r\n";
  }

  std::string store(const std::vector<std::string>& words, std::string_view request) {
    if (std::stoi(words.at(3)) < 0) {
      items_->items.erase(words[1]);
    } else {
      const std::size_t at = request.find("\r\n") + 2;
      const std::string value(request.substr(at, request.size() - at - 2));
      items_->items[words[1]] = {value, ++items_->versions};
    }
    return "STORED\r\n";
  }

  static std::string value_of(const std::pair<const std::string, MemcachedItems::Item>& item) {
    return fmt::format("VALUE {} 0 {} {}\r\n{}\r\nEND\r\n", item.first, item.second.value.size(),
                       item.second.version, item.second.value);
  }

  const std::shared_ptr<MemcachedItems> items_;
};

/// The last request for the lock decides.
bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (exchange->request.starts_with("add ")) return exchange->sent == "STORED\r\n";
  }
  return false;
}

class HostileMemcached : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileMemcached, GetsNoLockGrantedThatItDidNotGrant) {
  std::vector<std::string> replies = memcached_replies("lockbench:hostile:{k}");
  replies.emplace_back("STORED\r\nSTORED\r\n");
  expect_no_false_grants(
      *GetParam(), misdeeds(replies, {"STORED\r\n", "x", "STAT a b\r\n", "\r\n"}), [] {
        const auto items = std::make_shared<MemcachedItems>();
        return Honest{[items] { return std::make_unique<MemcachedSpeaker>(items); }, was_granted};
      });
}

INSTANTIATE_TEST_SUITE_P(All, HostileMemcached, testing::ValuesIn(strategies_of("memcached")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
