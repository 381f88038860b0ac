#include <fmt/format.h>

#include <map>

#include "cli/commands/metrics.h"
#include "strategies/store.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

TEST(WorkloadRecord, LeavesToSeveralLoadsWhatEachHasOfItsOwn) {
  const auto left = [](const std::string& loads) {
    const RunOptions options = parse_run({"--load", loads, "--hold", "3ms"}).value();
    OptionRecord record = workload_record(options);
    leave_to_the_loads(options, record);
    return record;
  };
  EXPECT_EQ(left("saturated").at("clients"), results::OptionValue(std::int64_t{8}));
  EXPECT_EQ(left("saturated,demand").at("clients"), results::OptionValue(nullptr));
  EXPECT_EQ(left("saturated,demand").at("hold"), results::OptionValue(0.003));
}

TEST(WorkloadRecord, KeepsTheDatabase) {
  const auto options = parse_run({"--redis", "redis://host:1/3", "--redis", "unix:///run/r?db=2",
                                  "--redis", "redis://host/0"});
  ASSERT_TRUE(options) << options.error();
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<List>(workload_record(*options).at("redis")),
            (List{"host:1/3", "unix:/run/r?db=2", "host:6379"}));
}

/// What names a server of each backend that is built, and how it is shown.
const std::map<std::string, std::pair<std::string, std::string>>& servers() {
  static const auto built = [] {
    std::map<std::string, std::pair<std::string, std::string>> all = {
        {"postgres", {"postgresql://ann:hunter2@db/app", "db:5432"}},
        {"memcached", {"cache", "cache:11211"}},
        {"zookeeper", {"zk://ann:hunter2@a,b:1/app", "a:2181,b:1/app"}},
        {"etcd", {"etcd://ann:hunter2@db,db2", "db:2379,db2:2379"}}};
    std::erase_if(all, [](const auto& server) { return find_store_kind(server.first) == nullptr; });
    return all;
  }();
  return built;
}

TEST(WorkloadRecord, HasEveryOptionAndNoSecret) {
  std::string text =
      "redis = [\"redis://ann:hunter2@host:1/3\"]\n"
      "counter-redis = \"redis://:hunter2@other\"\n";
  for (const auto& [backend, server] : servers()) {
    text += fmt::format("{} = \"{}\"\n", backend, server.first);
  }
  const TemporaryFile file("record.toml", text);
  const auto options = parse_run({"--config", file.path(), "--resource", "redis", "--ttl", "1500ms",
                                  "--hold", "exp(2ms)", "--rate", "10", "redis-*"});
  ASSERT_TRUE(options) << options.error();
  const auto record = workload_record(*options);
  EXPECT_EQ(record.size(), run_options().all().size());
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<double>(record.at("ttl")), 1.5);
  EXPECT_EQ(std::get<std::string>(record.at("hold")), "exp(2ms)");
  EXPECT_EQ(std::get<double>(record.at("think")), 0);
  EXPECT_EQ(std::get<double>(record.at("rate")), 10);
  EXPECT_EQ(std::get<List>(record.at("load")), List{"demand"}) << "it has a rate";
  EXPECT_EQ(std::get<std::int64_t>(record.at("clients")), 32);
  EXPECT_EQ(std::get<double>(record.at("acquire_timeout")), 30);
  EXPECT_EQ(record.at("wait"), results::OptionValue(nullptr));
  EXPECT_EQ(record.at("iterations"), results::OptionValue(nullptr));
  EXPECT_EQ(std::get<List>(record.at("strategies")), List{"redis-*"});
  EXPECT_EQ(std::get<List>(record.at("redis")), List{"host:1/3"});
  EXPECT_EQ(std::get<std::string>(record.at("counter_redis")), "other:6379");
  for (const auto& [backend, server] : servers()) {
    EXPECT_EQ(std::get<std::string>(record.at(backend)), server.second);
  }
}

}  // namespace
}  // namespace lockbench::cli
