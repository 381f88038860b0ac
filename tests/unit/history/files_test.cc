#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "history/log.h"
#include "history/operation.h"
#include "tests/support/temporary_folder.h"

// What the log writes and what the reader reads.

namespace lockbench::history {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TimePoint at(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

tl::expected<History, std::string> read_text(const std::string& text, Form form) {
  std::istringstream stream(text);
  return read(stream, form, "h");
}

/// "acquire ok p0 k 5..9 value 3 line 2"
std::vector<std::string> lines_of(const History& history) {
  std::vector<std::string> lines;
  for (const Operation& one : history.operations) {
    lines.push_back(fmt::format(
        "{} {} p{} {} {}..{} value {} line {}", kFunctions.at(static_cast<std::size_t>(one.f)),
        kOutcomes.at(static_cast<std::size_t>(one.outcome)),
        history.processes.at(static_cast<std::size_t>(one.process)),
        history.keys.at(static_cast<std::size_t>(one.key)), one.begin,
        one.end == kOpen ? "" : fmt::format("{}", one.end), one.value, one.line));
  }
  return lines;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class HistoryFiles : public testing::Test {
 protected:
  /// A grant, a wait in vain, a lost answer, a lost lease, and an acquisition without an end.
  void write_all() {
    auto log = Log::open(path_).value();
    {
      Process one(log.get()), two(log.get());
      one.acquire("a:1", false, at(100));
      two.acquire("a:1", false, at(101));
      one.end(Outcome::ok, at(110), 17);
      two.end(Outcome::fail, at(120));
      two.acquire("a:1", false, at(130));
      two.end(Outcome::info, at(140));
      one.release(at(150));
      one.end(Outcome::ok, at(150));
      two.acquire("a:2", true, at(150));
      two.end(Outcome::ok, at(149));
      two.release(at(160));
    }
    EXPECT_TRUE(log->close());
  }

  const test::TemporaryFolder folder_;
  std::string path_ = (folder_ / "h.edn").string();
};

TEST_F(HistoryFiles, EdnHasAMapForEachEventInTheirOrder) {
  write_all();
  EXPECT_EQ(text_of(path_),
            R"({:index 0, :type :invoke, :process 0, :f :acquire, :value ["a:1" nil], :time 0}
{:index 1, :type :invoke, :process 1, :f :acquire, :value ["a:1" nil], :time 1}
{:index 2, :type :ok, :process 0, :f :acquire, :value ["a:1" 17], :time 10}
{:index 3, :type :fail, :process 1, :f :acquire, :value ["a:1" nil], :time 20}
{:index 4, :type :invoke, :process 1, :f :acquire, :value ["a:1" nil], :time 30}
{:index 5, :type :info, :process 1, :f :acquire, :value ["a:1" nil], :time 40}
{:index 6, :type :invoke, :process 0, :f :release, :value ["a:1" nil], :time 50}
{:index 7, :type :ok, :process 0, :f :release, :value ["a:1" nil], :time 51}
{:index 8, :type :invoke, :process 2, :f :acquire-shared, :value ["a:2" nil], :time 52}
{:index 9, :type :ok, :process 2, :f :acquire-shared, :value ["a:2" nil], :time 53}
{:index 10, :type :invoke, :process 2, :f :release-shared, :value ["a:2" nil], :time 60}
)");
}

TEST_F(HistoryFiles, JsonHasAnObjectForEachOperation) {
  path_ = (folder_ / "h.jsonl").string();
  write_all();
  EXPECT_EQ(
      text_of(path_),
      R"({"ClientId":0,"Input":{"f":"acquire","key":"a:1"},"Call":0,"Output":{"type":"ok","value":17},"Return":10}
{"ClientId":1,"Input":{"f":"acquire","key":"a:1"},"Call":1,"Output":{"type":"fail","value":null},"Return":20}
{"ClientId":1,"Input":{"f":"acquire","key":"a:1"},"Call":30,"Output":{"type":"info","value":null},"Return":9223372036854775807}
{"ClientId":0,"Input":{"f":"release","key":"a:1"},"Call":50,"Output":{"type":"ok","value":null},"Return":51}
{"ClientId":2,"Input":{"f":"acquire-shared","key":"a:2"},"Call":52,"Output":{"type":"ok","value":null},"Return":53}
{"ClientId":2,"Input":{"f":"release-shared","key":"a:2"},"Call":60,"Output":{"type":"info","value":null},"Return":9223372036854775807}
)");
}

TEST_F(HistoryFiles, BothFormsAreReadAsTheSameOperations) {
  write_all();
  EXPECT_THAT(lines_of(read(path_).value()),
              ElementsAre("acquire ok p0 a:1 0..10 value 17 line 1",
                          "acquire fail p1 a:1 1..20 value -1 line 2",
                          "acquire info p1 a:1 30.. value -1 line 5",
                          "release ok p0 a:1 50..51 value -1 line 7",
                          "acquire-shared ok p2 a:2 52..53 value -1 line 9",
                          "release-shared info p2 a:2 60.. value -1 line 11"));
  path_ = (folder_ / "h.jsonl").string();
  write_all();
  EXPECT_THAT(lines_of(read(path_).value()),
              ElementsAre("acquire ok p0 a:1 0..10 value 17 line 1",
                          "acquire fail p1 a:1 1..20 value -1 line 2",
                          "acquire info p1 a:1 30.. value -1 line 3",
                          "release ok p0 a:1 50..51 value -1 line 4",
                          "acquire-shared ok p2 a:2 52..53 value -1 line 5",
                          "release-shared info p2 a:2 60.. value -1 line 6"));
}

TEST_F(HistoryFiles, AReleaseThatIsTriedAgainIsOneOperation) {
  auto log = Log::open(path_).value();
  {
    Process one(log.get());
    one.acquire("a", false, at(0));
    one.end(Outcome::ok, at(1));
    one.release(at(2), "a");
    one.release(at(5), "a");
    one.end(Outcome::ok, at(6));
  }
  EXPECT_TRUE(log->close());
  EXPECT_THAT(lines_of(read(path_).value()), ElementsAre("acquire ok p0 a 0..1 value -1 line 1",
                                                         "release ok p0 a 2..6 value -1 line 3"));
}

TEST_F(HistoryFiles, ThreadsWriteWholeLinesInTheOrderOfTheirTimes) {
  constexpr int kThreads = 4, kEach = 5000;
  auto log = Log::open(path_).value();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&log] {
      Process process(log.get());
      for (int n = 0; n < kEach; ++n) {
        process.acquire("a", false, at(n));
        process.end(Outcome::ok, at(n));
        process.release(at(n));
        process.end(Outcome::ok, at(n));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(log->close());
  const History history = read(path_).value();
  EXPECT_EQ(history.operations.size(), 2U * kThreads * kEach);
  EXPECT_TRUE(std::ranges::is_sorted(history.operations, {}, &Operation::begin));
}

TEST_F(HistoryFiles, AFullDiskIsAnErrorThatNamesTheFile) {
  std::filesystem::create_symlink("/dev/full", path_);
  auto log = Log::open(path_).value();
  {
    Process one(log.get());
    one.acquire("a", false, at(0));
  }
  const auto closed = log->close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error(), path_ + " is not the whole history: No space left on device");
}

TEST_F(HistoryFiles, OnlyTheTwoFormsCanBeWrittenAndRead) {
  EXPECT_EQ(Log::open("h.json").error(), "\"h.json\" is not a history; allowed: *.edn, *.jsonl");
  EXPECT_EQ(read("h.txt").error(), "\"h.txt\" is not a history; allowed: *.edn, *.jsonl");
  EXPECT_EQ(Log::open("/no/such/h.edn").error(), "/no/such/h.edn: No such file or directory");
  EXPECT_EQ(read("/no/such/h.edn").error(), "/no/such/h.edn: No such file or directory");
}

/// As other harnesses write it.
constexpr const char* kForeign = R"([; a comment with ] and "
#jepsen.history.Op{:type :invoke, :process 0, :f :acquire, :value nil, :error [{:a "}"} #{1} \}]}
{:process :nemesis, :type :info, :f :kill, :value {:n1 :killed}}
{:process 1, :type :invoke, :f :read}
{:process 0 :type :ok :f :acquire :value 5} ; more
{:process 1, :type :ok, :f :read, :value "x\"}"}
{:process 1, :type :invoke, :f :release, :value [:k nil], :time 99.5}
])";

TEST(HistoryReader, UnderstandsWhatJepsenWritesAndLeavesOutTheRest) {
  const History history = read_text(kForeign, Form::edn).value();
  EXPECT_THAT(lines_of(history), ElementsAre("acquire ok p0  0..2 value 5 line 2",
                                             "release info p1 k 4.. value -1 line 7"));
  EXPECT_EQ(history.ignored, 1U);
}

TEST(HistoryReader, TheOrderOfTheLinesWinsOverTheirTimes) {
  const std::string text =
      "{:process 0 :type :invoke :f :acquire :time 50}"
      "{:process 0 :type :ok :f :acquire :time 40}";
  EXPECT_THAT(lines_of(read_text(text, Form::edn).value()),
              ElementsAre("acquire ok p0  50..51 value -1 line 1"));
}

TEST(HistoryReader, NamesTheLineAndWhatIsWrong) {
  const std::string begun = "{:process 3 :type :invoke :f :acquire}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {begun + begun, "h:2: process 3 begins an operation before its previous one has ended"},
      {"\n\n{:process 3 :type :ok :f :acquire}",
       "h:3: process 3 ends an operation that it has not begun"},
      {begun + "{:process 3 :type :ok :f :release}",
       "h:2: :f is \"release\", but the process has begun acquire in line 1"},
      {"{:process 3 :type :done}", "h:1: :type is \"done\"; allowed: :invoke, :ok, :fail, :info"},
      {"{:type :invoke :f :acquire}", "h:1: :process is missing"},
      {begun + "x", "h:2: expected {"},
      {begun + "{:a }", "h:2: unexpected \"}\""},
      {begun + "{:process 3", "h:2: the line ends within an operation"},
      {begun + "{\"\\", "h:2: the line ends within an operation"},
      {begun + "{[\\", "h:2: the line ends within an operation"},
      {"{:value \"" + std::string(2 << 20, 'x') + "\"}", "h:1: longer than 1 MiB"},
  };
  for (const auto& [text, error] : cases) {
    const auto history = read_text(text, Form::edn);
    ASSERT_FALSE(history) << error;
    EXPECT_EQ(history.error(), error);
  }
}

TEST(HistoryReader, NamesTheLineAndWhatIsWrongInJson) {
  const auto object = [](std::string_view client, std::string_view output, std::string_view end) {
    return fmt::format(
        "\n{{\"ClientId\":{},\"Input\":{{\"f\":\"acquire\"}},\"Call\":7,\"Output\":{}"
        ",\"Return\":{}}}",
        client, output, end);
  };
  const std::string ok = R"({"type":"ok"})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {object("null", ok, "8"), "h:2: ClientId is \"\"; allowed: a whole number of 64 bits"},
      {object("1", ok, "8.5"), "h:2: Return is \"8.5\"; allowed: a whole number of 64 bits"},
      {object("1", "{}", "8"), "h:2: Output.type is \"\"; allowed: ok, fail, info"},
      {object("1", "\"ok\"", "8"), "h:2: expected {"},
      {object("1", ok, "6"), "h:2: Return is before Call"},
      {"{\"ClientId\" 1}", "h:1: expected :"},
  };
  for (const auto& [text, error] : cases) {
    const auto history = read_text(text, Form::jsonl);
    ASSERT_FALSE(history) << error;
    EXPECT_EQ(history.error(), error);
  }
  EXPECT_EQ(read_text(object("1", ok, "7"), Form::jsonl).value().operations.size(), 1U);
}

}  // namespace
}  // namespace lockbench::history
