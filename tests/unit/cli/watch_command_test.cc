#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "cli/commands/commands.h"
#include "cli/console/console.h"
#include "cli/console/publish.h"
#include "cli/console/watch_view.h"
#include "results/tables/text.h"
#include "tests/folders.h"
#include "tests/unit/cli/fixtures.h"
#include "watch/workload.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

tl::expected<WatchOptions, std::string> parse_watch(const std::vector<std::string>& args) {
  return parse<WatchOptions>(args);
}

std::string watch_error(const std::vector<std::string>& args) {
  return error_of<WatchOptions>(args);
}

const std::vector<std::string> watched_redis = {"--redis", "redis://h:6379"};

std::vector<std::string> with_redis(std::vector<std::string> args) {
  args.insert(args.end(), watched_redis.begin(), watched_redis.end());
  return args;
}

TEST(WatchOptions, EveryOptionReachesTheWatch) {
  const auto options = parse_watch(with_redis(
      {"--locks=lock:*,job:*", "--locks=x", "--budget=50", "--most-locks=1000", "--held-longer=30s",
       "--store-timeout=1s", "--duration=1m", "--no-screen", "--record=r.json", "--workload=w.toml",
       "--metrics-listen=:9466", "--exclude=lock:config", "--never-released=job:*", "--show-owners",
       "--deployment=shop"}));
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->request.locks, ElementsAre("lock:*", "job:*", "x"));
  EXPECT_EQ(options->request.budget, 50);
  EXPECT_EQ(options->request.command_timeout, 1s);
  EXPECT_EQ(options->request.most_locks, 1000U);
  EXPECT_EQ(options->ledger.most_locks, 1000U);
  EXPECT_EQ(options->ledger.held_longer, Duration(30s));
  EXPECT_EQ(options->duration, Duration(1min));
  EXPECT_EQ(options->output.out, "r.json");
  EXPECT_EQ(options->workload, "w.toml");
  EXPECT_EQ(options->metrics.listen->port, 9466);
  EXPECT_TRUE(options->no_screen);
  EXPECT_THAT(options->request.exclude, ElementsAre("lock:config"));
  EXPECT_THAT(options->ledger.never_released, ElementsAre("job:*"));
  EXPECT_TRUE(options->ledger.shows_owners);
  EXPECT_EQ(options->deployment, "shop");
}

TEST(WatchOptions, AreThoseOfTheShippedUnitAndItsFile) {
  const std::string folder = LOCKBENCH_SOURCE_DIR "/exporter/";
  const test::Scratch scratch;
  const std::string file = scratch.write("watch.toml", test::read_file(folder + "watch.toml"));
  std::istringstream unit(test::read_file(folder + "lockbench-watch.service"));
  std::vector<std::string> args;
  for (std::string line; std::getline(unit, line);) {
    std::istringstream words(line.starts_with("ExecStart=") ? line : "");
    for (std::string word; words >> word;) args.push_back(word == "%d/watch.toml" ? file : word);
  }
  ASSERT_GT(args.size(), 2U);
  args.erase(args.begin(), args.begin() + 2);  // the program and "watch"
  const auto options = parse_watch(args);
  ASSERT_TRUE(options) << options.error();
  EXPECT_TRUE(options->no_screen);
  EXPECT_EQ(options->metrics.listen->port, 9466);
  EXPECT_EQ(options->request.budget, 200);
  EXPECT_EQ(options->grouping().family_of("lock:order:17"), "order");
}

TEST(WatchOptions, GroupByNameBeforeLocks) {
  const auto grouping = [](std::vector<std::string> args) {
    return parse_watch(with_redis(std::move(args))).value().grouping();
  };
  EXPECT_EQ(grouping({"--locks", "lock:*"}).family_of("lock:order:17"), "lock:*");
  EXPECT_EQ(grouping({"--locks", "lock:*", "--name", "lock:(?<family>[a-z]+):.*"})
                .family_of("lock:order:17"),
            "order");
}

TEST(WatchOptions, WhatCannotBeWatchedIsNamed) {
  EXPECT_THAT(watch_error({}), HasSubstr("give servers, such as --redis URL"));
  EXPECT_THAT(watch_error({"--memcached", "h:11211"}), StartsWith("unknown option --memcached"));
  EXPECT_TRUE(parse_watch({"--nats", "nats://h:4222"}));
  if (!left_out("mysql")) {
    EXPECT_EQ(watch_error({"--mysql", "mysql://ann@db"}), "accepted");
  }
  EXPECT_THAT(watch_error(with_redis({"--locks", "lock:*,"})),
              StartsWith("--locks: \"\" is not the name of a lock"));
  EXPECT_THAT(watch_error(with_redis({"--budget", "0"})), HasSubstr("1 to 100000"));
  EXPECT_THAT(watch_error(with_redis({"--name", "lock:.*"})), StartsWith("--name: "));
  EXPECT_THAT(watch_error(with_redis({"--name", "("})), StartsWith("--name: "));
  EXPECT_EQ(watch_error(with_redis({"--deployment", "caf\xe9"})),
            "--deployment: must be printable UTF-8");
}

TEST(WatchOptions, NoServerIsWatchedTwice) {
  const Ran refused =
      ran({"watch", "--redis", "redis://127.0.0.1:1", "--redis", "redis://127.0.0.1:1/0"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--redis: 127.0.0.1:1 is given twice"));
}

TEST(WatchOptions, AWorkloadIsNotReplacedByTheRecordNorTheReport) {
  const TemporaryFile file("seen.toml", "");
  const std::filesystem::path path = file.path();
  const std::string again = path.parent_path() / "." / path.filename();
  for (const std::string option : {"--record", "--report"}) {
    const Ran refused =
        ran({"watch", "--redis", "redis://127.0.0.1:1", "--workload", file.path(), option, again});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("--workload and " + option + " must be different files"));
  }
}

TEST(SameFile, IsOneByWhateverNameAlsoBeforeItIsThere) {
  EXPECT_TRUE(same_file("not-there.json", "./not-there.json"));
  EXPECT_FALSE(same_file("not-there.json", "not-there.toml"));
  EXPECT_FALSE(same_file("/dev/null", "/dev/null"));
}

TEST(WatchedWorkload, IsWhatRunCapacityAndChooseTake) {
  const TemporaryFile file("watched \"1\".toml", "");
  const watch::ObservedWorkload workload{.rate = 120.5,
                                         .constant_arrival = true,
                                         .clients = 20,
                                         .keys = 50,
                                         .key_skew = 1.04,
                                         .work_p50 = 2ms,
                                         .work_p99 = 12ms,
                                         .ttl = 10s,
                                         .shared_share = 0.25,
                                         .hold = {{0, 1ms}, {0.5, 2ms}, {1, 12ms}},
                                         .remarks = {"No TTL \"was\" seen."}};
  const auto written = watch::write_workload(workload, file.path());
  ASSERT_TRUE(written) << written.error();

  const auto run = parse_run({"--config", file.path()});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->workload.rate, 120.5);
  EXPECT_EQ(run->workload.arrival, loadgen::Arrival::constant);
  EXPECT_EQ(run->workload.key_skew, 1.04);
  EXPECT_EQ(run->workload.shared_share, 0.25);
  const auto capacity = parse<CapacityOptions>({"--config", file.path()});
  ASSERT_TRUE(capacity) << capacity.error();
  EXPECT_EQ(capacity->planned_rate, 120.5);
  for (const loadgen::Workload& load : {run->workload, capacity->workload}) {
    EXPECT_EQ(load.clients, 20);
    EXPECT_EQ(load.keys, 50);
    EXPECT_EQ(load.ttl, 10s);
    EXPECT_EQ(load.hold.mean(), 4'250us);
  }
  const auto choose = parse<ChooseOptions>({"--config", file.path(), "--measure"});
  ASSERT_TRUE(choose) << choose.error();
  EXPECT_EQ(choose->requirements.rate, 120.5);
  EXPECT_EQ(choose->requirements.clients, 20);
  EXPECT_EQ(choose->requirements.key_skew, 1.04);
  EXPECT_EQ(choose->requirements.work_p50, 2ms);
  EXPECT_EQ(choose->requirements.work_p99, 12ms);
  EXPECT_TRUE(choose->requirements.shared);
}

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const TimePoint picture_time{1h};

watch::FamilyPicture family(const std::string& name, double rate, std::uint64_t waiting) {
  watch::FamilyPicture family;
  family.store = "redis";
  family.family = name;
  family.locks = 3;
  family.acquisitions = 1000;
  family.acquisitions_per_second = rate;
  family.waiting_now = waiting;
  family.held_now = 1;
  loadgen::HistogramSnapshot holds;
  holds.record(20ms);
  family.hold = loadgen::to_distribution(holds);
  family.accuracy = "at_least";
  return family;
}

watch::LockPicture lock(const std::string& name, std::optional<double> held_for,
                        std::uint64_t waiting) {
  watch::LockPicture lock;
  lock.lock = name;
  lock.store = "redis";
  lock.family = "order";
  lock.waiting_now = waiting;
  lock.held_seconds = held_for;
  if (held_for) lock.holder = "0123456789abcdef";
  lock.ttl_left_seconds = 7;
  return lock;
}

watch::Finding finding(const std::string& family_name) {
  return {{.kind = "expired",
           .store = "redis",
           .family = family_name,
           .lock = std::nullopt,
           .times = 4,
           .evidence = "4 locks expired under their holders",
           .advice = "Renew them."},
          {}};
}

watch::Picture sample() {
  watch::Picture picture;
  picture.at = picture_time;
  picture.watched = 90s;
  watch::SourcePicture source;
  source.facts = {.store = "redis",
                  .endpoint = "redis://h:6379",
                  .way = "CLIENT TRACKING",
                  .accuracy = watch::Accuracy::at_least};
  picture.sources.push_back(source);
  picture.families = {family("order", 10, 0), family("mail", 90, 5)};
  picture.worst = {lock("lock:a", 2, 0), lock("lock:b", std::nullopt, 9), lock("lock:c", 60, 1)};
  picture.findings = {finding("order")};
  return picture;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string view_of(const watch::Picture& picture, std::size_t columns = 160,
                    std::size_t lines = 40, bool ascii = false) {
  return text_of(watch_view(picture, lines, {.ascii = ascii, .width = columns}));
}

TEST(WatchView, ShowsSourcesFindingsFamiliesAndLocks) {
  const std::string text = view_of(sample());
  EXPECT_THAT(text, HasSubstr("redis://h:6379: CLIENT TRACKING, counts are lower bounds"));
  EXPECT_THAT(text, HasSubstr("waiters: not seen"));
  EXPECT_THAT(text, HasSubstr("4 locks expired under their holders"));
  EXPECT_THAT(text, HasSubstr(": Renew them."));
  EXPECT_THAT(text, HasSubstr("≥1000"));
  EXPECT_THAT(text, HasSubstr("20 ms"));
  EXPECT_THAT(text, HasSubstr("lock:c"));
  EXPECT_THAT(text, HasSubstr("0123456789abcdef"));
  EXPECT_THAT(text, HasSubstr("7 s"));
}

TEST(WatchView, HasNoMoreLinesThanTheTerminal) {
  watch::Picture big = sample();
  for (int i = 0; i < 60; ++i) {
    big.families.push_back(family(fmt::format("family-with-a-long-name-{}", i), i, 0));
    big.worst.push_back(lock(fmt::format("lock:with-quite-a-long-name:{}", i), 1, 0));
    big.findings.push_back(finding(fmt::format("f{}", i)));
  }
  big.sources.resize(9, big.sources.front());
  for (const watch::Picture& picture : {big, sample(), watch::Picture()}) {
    for (std::size_t columns = 1; columns < 200; columns += 7) {
      for (std::size_t lines = 1; lines < 70; lines += 5) {
        ASSERT_LE(watch_view(picture, lines, {.width = columns}).size(), lines);
      }
    }
  }
}

TEST(WatchView, ShowsWhatWasSaidAsItHidesTheTerminal) {
  const auto view = watch_view(sample(), 40, {.width = 160}, {"not saved so far: disk full"});
  EXPECT_THAT(view.at(2), HasSubstr("not saved so far: disk full"));
  EXPECT_LE(watch_view(sample(), 2, {.width = 160}, {"a", "b", "c"}).size(), 2U);
}

TEST(WatchView, NamesCannotCommandTheTerminal) {
  watch::Picture picture = sample();
  picture.worst[0].lock = "lock:\x1b[2J\x07\n\xc2\x9b\x9b";
  picture.families[0].family = "\x1b]0;title\x07";
  picture.sources[0].facts.endpoint = "redis://h\r\n";
  picture.findings[0].evidence = "evil \x1b[31m";
  for (const std::string& line : watch_view(picture, 40, {.width = 160})) {
    EXPECT_EQ(results::printable(line), line);
  }
}

TEST(WatchView, SaysThatItIsBlindAndWhatToName) {
  watch::Picture picture;
  picture.sources = sample().sources;
  picture.sources[0].sees = false;
  picture.sources[0].blind_reason = "connection refused";
  picture.sources[0].blind_for = 12;
  picture.proposals = {"lock:order:*", "lock:mail:*"};
  const auto lines = watch_view(picture, 40, {.color = true, .width = 160});
  EXPECT_THAT(lines.at(1),
              AllOf(HasSubstr("BLIND for 12 s: connection refused"), HasSubstr("\x1b[31m")));
  EXPECT_THAT(text_of(lines), HasSubstr("name them with --locks\nlock:order:*\n"));
}

TEST(WatchView, MarksFiguresThatRestOnPartOfTheLocks) {
  watch::Picture picture = sample();
  picture.sources[0].facts.progress = "900 keys left";
  picture.families.resize(1);
  watch::FamilyPicture& shown = picture.families[0];
  shown.accuracy = "exact";
  shown.taken_over = 7;
  shown.hold_share = 0.96;
  EXPECT_THAT(view_of(picture), HasSubstr("first look: 900 keys left"));
  EXPECT_THAT(view_of(picture), AllOf(HasSubstr(" 20 ms"), Not(HasSubstr("≥7"))));
  shown.hold_share = 0.5;
  shown.owner_share = 0.1;
  EXPECT_THAT(view_of(picture), AllOf(HasSubstr("~20 ms"), HasSubstr("≥7")));
}

TEST(WatchLines, TellsAFindingOnceUntilItWasAway) {
  WatchLines log;
  watch::Picture picture = sample();
  EXPECT_THAT(log.lines(picture), Contains(HasSubstr("expired: redis order: 4 locks expired")));
  picture.at += 1s;
  picture.findings[0].evidence = "5 locks expired under their holders";
  EXPECT_THAT(log.lines(picture), IsEmpty());
  picture.findings.clear();
  for (int i = 0; i < 9; ++i) {
    picture.at += 8s;
    EXPECT_THAT(log.lines(picture), Each(Not(HasSubstr("expired: redis"))));
  }
  picture.findings = {finding("order")};
  picture.at += 1s;
  EXPECT_THAT(log.lines(picture), Contains(HasSubstr("expired: redis order")));
}

TEST(WatchLines, TellsWhenAServerIsLostAndBack) {
  WatchLines log;
  watch::Picture picture = sample();
  picture.findings.clear();
  picture.sources[0].facts.unseen = {"who waits"};
  EXPECT_THAT(log.lines(picture), ElementsAre(HasSubstr("CLIENT TRACKING"), "cannot see who waits",
                                              HasSubstr("2 families")));
  EXPECT_THAT(log.lines(picture), IsEmpty());
  picture.sources[0].sees = false;
  picture.sources[0].blind_reason = "connection refused";
  EXPECT_THAT(log.lines(picture), ElementsAre(HasSubstr("BLIND for 0 s: connection refused")));
  EXPECT_THAT(log.lines(picture), IsEmpty());
  picture.sources[0].sees = true;
  EXPECT_THAT(log.lines(picture), ElementsAre(HasSubstr("CLIENT TRACKING")));
}

TEST(WatchLines, TellsOfAServerThatWasNotThereAtTheStart) {
  WatchLines log;
  watch::Picture picture = sample();
  picture.findings.clear();
  picture.families.clear();
  picture.sources[0].sees = false;
  picture.sources[0].blind_reason = "connection refused";
  EXPECT_THAT(log.lines(picture), Contains(HasSubstr("BLIND for 0 s: connection refused")));
  picture.sources[0].sees = true;
  picture.sources[0].facts.unseen = {"who waits"};
  EXPECT_THAT(log.lines(picture),
              ElementsAre(HasSubstr("CLIENT TRACKING"), "cannot see who waits"));
}

TEST(WatchLines, SumsUpEveryTenSecondsWhatHasChanged) {
  WatchLines log;
  watch::Picture picture = sample();
  std::vector<std::string> summaries;
  for (int second = 0; second <= 30; ++second) {
    picture.at = picture_time + std::chrono::seconds(second);
    picture.families[0].held_now = second < 15 ? 1 : 2;
    for (const std::string& line : log.lines(picture)) {
      if (line.starts_with("2 families")) summaries.push_back(line);
    }
  }
  EXPECT_THAT(summaries, SizeIs(2));
  EXPECT_EQ(summaries.at(0),
            "2 families: 2 held, 5 waiting, 100 acquisitions/s, 0 expired while held, 0 without "
            "TTL");
}

}  // namespace
}  // namespace lockbench::cli
