#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/console/publish.h"
#include "results/file/json.h"
#include "tests/integration/support/program.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"
#include "tests/unit/results/samples.h"

namespace lockbench::cli {
namespace {

using results::minimal_result;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ReportCommand : public testing::Test {
 protected:
  std::string file(const std::string& name) {
    return scratch_.write(name, results::to_json(minimal_result()));
  }
  static Ran report(std::vector<std::string> args) {
    args.insert(args.begin(), "report");
    return ran(args);
  }

  test::Scratch scratch_;
};

TEST_F(ReportCommand, WritesAPage) {
  const std::string page = scratch_ / "deep/er/page.html";
  const Ran written = report({file("a.json"), "--out", page});
  EXPECT_EQ(written.code, 0);
  EXPECT_THAT(test::read_file(page), StartsWith("<!doctype html>"));
  EXPECT_THAT(written.err, HasSubstr("report in " + page));
}

TEST_F(ReportCommand, NamesFilesAsTheyWereGiven) {
  for (const std::string_view folder : {"a", "b"}) {
    std::filesystem::create_directory(scratch_ / folder);
  }
  const std::string a = file("a/out.json"), b = file("b/out.json");
  const Ran shown = report({a, b, "--out", "-"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr(">" + a + "</a>"), HasSubstr(">" + b + "</a>")));
}

/// Notices what is opened in a folder.
class Opened {
 public:
  explicit Opened(const std::filesystem::path& folder) {
    EXPECT_GE(inotify_add_watch(events_, folder.c_str(), IN_OPEN), 0);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { close(events_); }

  /// Since the last call.
  bool anything() const {
    std::array<char, 4096> some{};
    return ::read(events_, some.data(), some.size()) > 0;
  }

 private:
  const int events_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
};

TEST_F(ReportCommand, OpensNothingThatAFileNames) {
  const test::Scratch named;
  const std::string secret = named.write("secret", "redis://u:hunter2@localhost:1"),
                    trace = named.write("trace", "0,1\n"), hold = named.write("hold", "1ms\n");
  results::Result result = minimal_result();
  result.runs = {results::simple_run("redis-queue")};
  result.workload = {{"redis", std::vector<std::string>{"@" + secret}},
                     {"trace", trace},
                     {"hold", "quantiles:" + hold}};
  const std::string path = scratch_.write("r.json", results::to_json(result));
  const Opened opened(named.path());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"report", path, "--out", "-"}, {"show", path}}) {
    const Ran shown = ran(command);
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_EQ(shown.err, "");
    EXPECT_FALSE(opened.anything());
  }
  EXPECT_EQ(test::read_file(trace), "0,1\n");
  EXPECT_TRUE(opened.anything()) << "what it must notice";
}

TEST_F(ReportCommand, MistakesAreOneLineThatNamesTheCulprit) {
  const std::string a = file("a.json");
  const std::string broken = scratch_.write("broken.json", "{\"schema\": 7}");
  const std::string page = scratch_ / "page.html";
  std::vector<std::string> many(13, a);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{}, "expected 1 to 12 result files"},
      {many, "(given: 13)"},
      {{"/no/such.json"}, "/no/such.json: cannot be read"},
      {{a, broken, "--out", page}, "broken.json: schema 7 cannot be read, only"},
      {{a, "--out", a}, "is one of the results"},
      {{a, "--out", scratch_.path().string()}, "is a directory"},
      {{a, "--out", "/dev/null/x/y.html"}, "--out: cannot"}};
  for (const auto& [args, text] : mistakes) expect_refused(report(args), HasSubstr(text));
  EXPECT_FALSE(std::filesystem::exists(page));
  EXPECT_EQ(test::read_file(a), results::to_json(minimal_result()));
}

TEST_F(ReportCommand, AFullDiskIsReported) {
  // A page that cannot be written there goes to a temporary file.
  const test::Variable folder("TMPDIR", scratch_.path());
  testing::internal::CaptureStderr();
  bool saved = true;
  {
    Console console(stderr, false, true);
    saved = save_report(minimal_result(), "/dev/full", "a.json", console);
  }
  EXPECT_FALSE(saved);
  EXPECT_THAT(scratch_.all_text(), StartsWith("<!doctype html>")) << "nothing is lost";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot write /dev/full"));
}

}  // namespace
}  // namespace lockbench::cli
