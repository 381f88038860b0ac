#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "simulate/memcached/model.h"
#include "strategies/number.h"
#include "strategies/random.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::simulate {
namespace {

/// The numbers of versions that the model and the server give to the same items.
class Versions {
 public:
  /// False if one of them has another partner.
  bool pair(std::uint64_t model, std::uint64_t server) {
    latest_ = model;
    const auto [real, fresh] = servers_.emplace(model, server);
    const auto [modelled, fresh_too] = models_.emplace(server, model);
    return real->second == server && modelled->second == model && fresh == fresh_too;
  }
  /// A version and its partner: that of the latest item read, an older one, or one that no item
  /// has.
  std::pair<std::uint64_t, std::uint64_t> any(std::uint64_t random) const {
    constexpr std::uint64_t kUnknown = 1ULL << 60;
    if (servers_.empty() || random % 8 == 0) return {kUnknown, kUnknown};
    if (random % 8 == 1) return {0, 0};
    const auto found = random % 8 == 2 ? servers_.begin() : servers_.find(latest_);
    return {found->first, found->second};
  }

 private:
  std::map<std::uint64_t, std::uint64_t> servers_, models_;  ///< partners, by the other's number
  std::uint64_t latest_ = 0;
};

/// A command as the model gets it, and as the server does: with its own version.
struct Command {
  std::string model, server;
};

class RandomItems {
 public:
  RandomItems(std::uint64_t seed, const Versions& versions) : random_(seed), versions_(versions) {}

  Command next() {
    switch (below(10)) {
      case 0:
      case 1:
        return same(storing("add"));
      case 2:
        return same(storing("set"));
      case 3:
      case 4: {
        const auto [model, server] = versions_.any(random_());
        const std::string line = storing_line("cas"), data = value();
        return {fmt::format("{} {} {}\r\n{}\r\n", line, data.size(), model, data),
                fmt::format("{} {} {}\r\n{}\r\n", line, data.size(), server, data)};
      }
      case 5:
      case 6:
        return same(fmt::format("gets {}\r\n", key()));
      case 7:
        return same(fmt::format("touch {} {}\r\n", key(), seconds()));
      case 8:
        return same(fmt::format("delete {}\r\n", key()));
      default:
        return same(rare());
    }
  }

 private:
  static Command same(const std::string& text) { return {text, text}; }
  std::size_t below(std::size_t count) { return random_() % count; }
  std::string pick(const std::vector<std::string>& all) { return all[below(all.size())]; }
  std::string key() { return fmt::format("k{}", below(6)); }
  std::string value() { return pick({"a", "", "token-1", "x y", std::string(300, 'v')}); }
  // Longer than the test takes, or over at once: a time of day long ago, and a negative one.
  std::string seconds() { return pick({"0", "5000", "2592000", "-1", "2592001", "-5"}); }
  std::string storing_line(const char* name) {
    return fmt::format("{} {} {} {}", name, key(), pick({"0", "7", "4294967295"}), seconds());
  }
  std::string storing(const char* name) {
    const std::string data = value();
    return fmt::format("{} {}\r\n{}\r\n", storing_line(name), data.size(), data);
  }
  // No "get" of a key that is too long: the server then drops the answers before it, too.
  std::string rare() {
    const std::string long_key(251, 'k');
    return pick({"get " + key() + "\r\n",
                 "gets " + key() + "  " + key() + "\r\n",
                 "gets\r\n",
                 "nosuch k\r\n",
                 "\r\n",
                 "x\r\n",
                 "touch k0 soon\r\n",
                 "touch k0\r\n",
                 "delete k1 0\r\n",
                 "delete k1 5\r\n",
                 "delete\r\n",
                 "delete " + long_key + "\r\n",
                 "add k2 0 x 3\r\nabc\r\n",
                 "add k2 0 0 -1\r\n",
                 "add k2 0 0 3 4 5\r\n",
                 "set k3 x 0 3\r\nabc\r\n",
                 "cas k3 0 0 3 x\r\nabc\r\n",
                 "cas k3 0 0 3\r\nabc\r\n",
                 "add k4 0 0 2\r\nabcd\r\n",
                 "delete k5\n"});
  }

  Random random_;
  const Versions& versions_;
};

/// Whether the lines are the same but for the versions of items.
bool agree(const std::string& model, const std::string& server, Versions& versions) {
  const auto cut = [](const std::string& line) { return line.rfind(' ') + 1; };
  const bool read = model.starts_with("VALUE ") && std::ranges::count(model, ' ') == 4;
  if (!read) return model == server;
  const auto own = parse_number<std::uint64_t>(std::string_view(model).substr(cut(model)));
  const auto real = parse_number<std::uint64_t>(std::string_view(server).substr(cut(server)));
  return own && real && model.substr(0, cut(model)) == server.substr(0, cut(server)) &&
         versions.pair(*own, *real);
}

TEST(MemcachedFidelity, AHundredThousandRandomCommandsGetTheAnswersOfARealServer) {
  const auto server = test::must(testbed::start_memcached(test::shared_testbed()));
  MemcachedModel model;
  Versions versions;
  RandomItems commands(20261130, versions);
  const auto whole = [](std::string_view text) {
    return text.find("VERSION ") != std::string_view::npos && text.ends_with("\r\n");
  };
  constexpr int kBatches = 1000, kBatch = 100;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::string asked, input, modelled;
    for (int i = 0; i < kBatch; ++i) {
      const Command command = commands.next();
      asked += command.server;
      input += command.model;
    }
    const std::string said = input;
    for (auto answer = model.execute(input, MemcachedModel::kFirstSecond); answer;
         answer = model.execute(input, MemcachedModel::kFirstSecond)) {
      modelled += *answer;
    }
    ASSERT_EQ(input, "");
    const std::string real =
        test::must(testbed::ask_memcached(*server, asked + "version\r\n", test::kPatience, whole));
    std::vector<std::string> lines = test::lines_of(real);
    const std::vector<std::string> expected = test::lines_of(modelled);
    ASSERT_THAT(lines.back(), testing::StartsWith("VERSION "));
    lines.pop_back();
    for (std::size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
      ASSERT_TRUE(agree(expected[i], lines[i], versions))
          << "line " << i << ": model " << expected[i] << ", server " << lines[i] << ", of\n"
          << said;
    }
    ASSERT_EQ(lines.size(), expected.size()) << said;
  }
}

}  // namespace
}  // namespace lockbench::simulate
