#include "cli/console/watch_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/console/screen.h"
#include "cli/console/watch_text.h"
#include "results/tables/text.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const TimePoint picture_time{1h};

watch::FamilyPicture family(const std::string& name, double rate, std::uint64_t waiting) {
  watch::FamilyPicture family;
  family.store = "redis";
  family.family = name;
  family.locks = 3;
  family.figures.acquisitions = 1000;
  family.figures.acquisitions_per_second = rate;
  family.figures.waits_known = true;
  family.figures.waiting_now = waiting;
  family.figures.held_now = 1;
  family.figures.hold.record(20ms);
  family.figures.accuracy = watch::Accuracy::at_least;
  return family;
}

watch::LockPicture lock(const std::string& name, std::optional<Duration> held_for,
                        std::uint64_t waiting) {
  watch::LockPicture lock;
  lock.name = name;
  lock.store = "redis";
  lock.family = "order";
  lock.figures.waits_known = true;
  lock.figures.waiting_now = waiting;
  lock.figures.oldest_hold = held_for;
  if (held_for) lock.holder = "0123456789abcdef";
  lock.ttl_left = 7s;
  return lock;
}

watch::Finding finding(const std::string& family_name) {
  return {.kind = watch::Finding::Kind::expired,
          .store = "redis",
          .family = family_name,
          .lock = std::nullopt,
          .times = 4,
          .evidence = "4 locks expired under their holders",
          .advice = "Renew them."};
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
  picture.worst = {lock("lock:a", 2s, 0), lock("lock:b", std::nullopt, 9), lock("lock:c", 60s, 1)};
  picture.findings = {finding("order")};
  return picture;
}

/// The lines that begin with one of these words, in order, by their first word.
std::vector<std::string> names_in(const std::vector<ScreenLine>& lines, const std::string& begin) {
  std::vector<std::string> names;
  for (const ScreenLine& line : lines) {
    if (line.text.starts_with(begin)) names.push_back(line.text.substr(0, line.text.find(' ')));
  }
  return names;
}

std::string text_of(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) text += line.text + "\n";
  return text;
}

std::string selected_in(const std::vector<ScreenLine>& lines) {
  std::string selected;
  for (const ScreenLine& line : lines) {
    if (line.selected) selected += line.text.substr(0, line.text.find(' '));
  }
  return selected;
}

constexpr ScreenSize kUsual{.columns = 140, .lines = 30};

TEST(WatchView, ShowsSourcesFindingsFamiliesAndLocks) {
  const std::string text = text_of(WatchView(false).lines(sample(), kUsual));
  EXPECT_THAT(text, HasSubstr("redis://h:6379: CLIENT TRACKING, counts are lower bounds"));
  EXPECT_THAT(text, HasSubstr("waiters: not seen"));
  EXPECT_THAT(text, HasSubstr("4 locks expired under their holders"));
  EXPECT_THAT(text, HasSubstr("  Renew them."));
  EXPECT_THAT(text, HasSubstr("FAMILY"));
  EXPECT_THAT(text, HasSubstr("≥1000"));
  EXPECT_THAT(text, HasSubstr("20 ms"));
  EXPECT_THAT(text, HasSubstr("01234567 "));
  EXPECT_THAT(text, Not(HasSubstr("012345678")));
}

TEST(WatchView, FitsEveryScreen) {
  watch::Picture big = sample();
  for (int i = 0; i < 60; ++i) {
    big.families.push_back(family(fmt::format("family-with-a-long-name-{}", i), i, 0));
    big.worst.push_back(lock(fmt::format("lock:with-quite-a-long-name:{}", i), 1s, 0));
    big.findings.push_back(finding(fmt::format("f{}", i)));
  }
  big.sources.resize(9, big.sources.front());
  for (const bool ascii : {false, true}) {
    WatchView view(ascii);
    for (const watch::Picture& picture : {big, sample(), watch::Picture()}) {
      for (std::size_t columns = 1; columns < 200; columns += 7) {
        for (std::size_t lines = 1; lines < 70; lines += 5) {
          const auto drawn = view.lines(picture, {.columns = columns, .lines = lines});
          ASSERT_LE(drawn.size(), lines);
          for (const ScreenLine& line : drawn) {
            ASSERT_LE(results::display_width(line.text), columns) << line.text;
          }
        }
      }
    }
  }
}

TEST(WatchView, KeepsTheFamiliesAndLocksOnASmallTerminal) {
  watch::Picture big = sample();
  for (int i = 0; i < 20; ++i) big.findings.push_back(finding(fmt::format("f{}", i)));
  const auto lines = WatchView(false).lines(big, {.columns = 80, .lines = 24});
  EXPECT_THAT(names_in(lines, "order"), SizeIs(1));
  EXPECT_THAT(names_in(lines, "lock:"), ElementsAre("lock:a", "lock:b", "lock:c"));
  EXPECT_THAT(text_of(lines), HasSubstr("and 18 more"));
}

TEST(WatchView, AsciiIsAscii) {
  watch::Picture picture = sample();
  picture.worst[0].name = "lock:straße";
  for (const ScreenLine& line : WatchView(true).lines(picture, kUsual)) {
    for (const char c : line.text) EXPECT_TRUE(c >= ' ' && c < '\x7f') << line.text;
  }
}

TEST(WatchView, NamesCannotCommandTheTerminal) {
  watch::Picture picture = sample();
  picture.worst[0].name = "lock:\x1b[2J\x07\n\xc2\x9b\x9b";
  picture.families[0].family = "\x1b]0;title\x07";
  picture.sources[0].facts.endpoint = "redis://h\r\n";
  picture.findings[0].evidence = "evil \x1b[31m";
  WatchView view(false);
  for (int opened = 0; opened < 2; ++opened) {
    for (const ScreenLine& line : view.lines(picture, kUsual)) {
      EXPECT_EQ(results::printable(line.text), line.text);
    }
    view.press(Key::open, picture);
  }
}

TEST(WatchView, LongNamesKeepTheirEnds) {
  watch::Picture picture = sample();
  picture.worst = {lock("lock:" + std::string(60, 'x') + ":äöü", 1s, 0)};
  const std::string text = text_of(WatchView(false).lines(picture, {.columns = 60, .lines = 24}));
  EXPECT_THAT(text, testing::ContainsRegex("lock:x*…x*:äöü "));
}

TEST(WatchView, TheOrderChanges) {
  WatchView view(false);
  const watch::Picture picture = sample();
  const auto locks = [&] { return names_in(view.lines(picture, kUsual), "lock:"); };
  const auto first_family = [&] {
    const std::string text = text_of(view.lines(picture, kUsual));
    return text.find("\norder") < text.find("\nmail") ? "order" : "mail";
  };
  EXPECT_THAT(locks(), ElementsAre("lock:a", "lock:b", "lock:c")) << "as the picture has them";
  EXPECT_EQ(first_family(), std::string("order")) << "which has a finding";
  view.press(Key::order, picture);
  EXPECT_THAT(locks(), ElementsAre("lock:c", "lock:a", "lock:b")) << "held for longest";
  view.press(Key::order, picture);
  EXPECT_THAT(locks(), ElementsAre("lock:b", "lock:c", "lock:a")) << "most waiting";
  EXPECT_EQ(first_family(), std::string("mail"));
  for (int i = 0; i < 3; ++i) view.press(Key::order, picture);
  EXPECT_THAT(locks(), ElementsAre("lock:a", "lock:b", "lock:c"));
}

TEST(WatchView, TheSelectionStaysWithItsLock) {
  WatchView view(false);
  watch::Picture picture = sample();
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:a");
  view.press(Key::down, picture);
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:b");
  std::swap(picture.worst[0], picture.worst[1]);
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:b");
  for (int i = 0; i < 9; ++i) view.press(Key::down, picture);
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:c");
  for (int i = 0; i < 9; ++i) view.press(Key::up, picture);
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:b");
}

TEST(WatchView, TellsTheLocksOfTwoServersApart) {
  WatchView view(false);
  watch::Picture picture = sample();
  picture.worst = {lock("lock:a", 2s, 0), lock("lock:a", 2s, 0), lock("lock:b", 2s, 0)};
  picture.worst[1].endpoint = "redis://other:6379";
  view.press(Key::down, picture);
  view.press(Key::open, picture);
  EXPECT_THAT(text_of(view.lines(picture, kUsual)), HasSubstr("redis redis://other:6379 order"));
  view.press(Key::back, picture);
  view.press(Key::down, picture);
  EXPECT_EQ(selected_in(view.lines(picture, kUsual)), "lock:b");
}

TEST(WatchView, ShowsTheHistoryOfOneLock) {
  WatchView view(false);
  watch::Picture picture = sample();
  picture.worst[0].history = {
      {.at = picture_time - 5s, .kind = watch::Moment::Kind::granted, .holder = "aaaa"},
      {.at = picture_time - 2s,
       .kind = watch::Moment::Kind::expired,
       .holder = "aaaa",
       .waiting = 3}};
  view.press(Key::open, picture);
  const auto lines = view.lines(picture, kUsual);
  const std::string text = text_of(lines);
  EXPECT_THAT(text, testing::StartsWith("lock:a\n"));
  EXPECT_LT(text.find("2 s  expired"), text.find("5 s  granted")) << "the latest first";
  picture.worst.clear();
  EXPECT_THAT(text_of(view.lines(picture, kUsual)), HasSubstr("no longer among"));
  EXPECT_TRUE(view.press(Key::quit, picture)) << "only back to the overview";
  EXPECT_THAT(text_of(view.lines(picture, kUsual)), HasSubstr("FAMILY"));
  EXPECT_FALSE(view.press(Key::quit, picture));
}

TEST(WatchView, SaysThatItIsBlindAndWhatToName) {
  watch::Picture picture;
  picture.sources = sample().sources;
  picture.sources[0].sees = false;
  picture.sources[0].blind_reason = "connection refused";
  picture.proposals = {"lock:order:*"};
  const auto lines = WatchView(false).lines(picture, kUsual);
  EXPECT_THAT(text_of(lines), HasSubstr("BLIND: connection refused"));
  EXPECT_EQ(lines.at(1).tone, results::Tone::bad);
  EXPECT_THAT(text_of(lines), HasSubstr("name them with --locks\n  lock:order:*\n"));
}

TEST(Keys, AreReadFromWhatATerminalSends) {
  EXPECT_THAT(read_keys("\x1b[A\x1bOBsq\r"),
              ElementsAre(Key::up, Key::down, Key::order, Key::quit, Key::open));
  EXPECT_THAT(read_keys("\x1b"), ElementsAre(Key::back));
  EXPECT_THAT(read_keys("\x1b[5~x\x1b[1;5C"), IsEmpty()) << "they mean nothing";
  EXPECT_THAT(read_keys("\x1b[5~q"), ElementsAre(Key::quit));
  EXPECT_THAT(read_keys("\x1b[12345"), IsEmpty());
}

TEST(Frame, DrawsEachLineAndClearsTheRest) {
  const std::vector<ScreenLine> lines = {{.text = "head", .heading = true},
                                         {.text = "row", .tone = results::Tone::bad}};
  EXPECT_EQ(frame(lines, true), "\x1b[H\x1b[1mhead\x1b[0m\x1b[K\r\n\x1b[31mrow\x1b[0m\x1b[K\x1b[J");
  EXPECT_THAT(frame(lines, false), Not(HasSubstr("\x1b[31m")));
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

TEST(WatchLines, TellsWhatEachServerMissed) {
  WatchLines log;
  watch::Picture picture = sample();
  watch::Finding blind{.kind = watch::Finding::Kind::blind, .store = "redis", .family = {}};
  picture.findings.clear();
  for (const std::string server : {"redis://h:6379", "redis://other:6379"}) {
    blind.endpoint = server;
    blind.evidence = server + " was not seen for 2 s in total";
    picture.findings.push_back(blind);
  }
  EXPECT_THAT(log.lines(picture), AllOf(Contains(HasSubstr("redis://h:6379 was not seen")),
                                        Contains(HasSubstr("redis://other:6379 was not seen"))));
}

TEST(WatchLines, TellsWhenAServerIsLostAndBack) {
  WatchLines log;
  watch::Picture picture = sample();
  picture.findings.clear();
  picture.sources[0].facts.unseen = {"who waits"};
  EXPECT_THAT(log.lines(picture),
              ElementsAre(HasSubstr("CLIENT TRACKING"), "cannot see who waits"));
  EXPECT_THAT(log.lines(picture), IsEmpty());
  picture.sources[0].sees = false;
  picture.sources[0].blind_reason = "connection refused";
  EXPECT_THAT(log.lines(picture), ElementsAre(HasSubstr("BLIND: connection refused")));
  EXPECT_THAT(log.lines(picture), IsEmpty());
  picture.sources[0].sees = true;
  EXPECT_THAT(log.lines(picture), ElementsAre(HasSubstr("CLIENT TRACKING")));
}

TEST(WatchLines, SumsUpEveryTenSeconds) {
  WatchLines log;
  watch::Picture picture = sample();
  std::vector<std::string> summaries;
  for (int second = 0; second <= 30; ++second) {
    picture.at = picture_time + std::chrono::seconds(second);
    for (const std::string& line : log.lines(picture)) {
      if (line.starts_with("2 families")) summaries.push_back(line);
    }
  }
  EXPECT_THAT(summaries, SizeIs(3));
  EXPECT_EQ(summaries.at(0),
            "2 families: 2 held, 5 waiting, 100 acquisitions/s, 0 expired while held, 0 without "
            "TTL");
}

}  // namespace
}  // namespace lockbench::cli
