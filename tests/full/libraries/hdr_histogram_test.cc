#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/output_of.h"

namespace lockbench::test {
namespace {

/// HdrHistogram's own program for logs: percentile output of all intervals of a tag.
std::string processed(const std::filesystem::path& log, const std::string& tag) {
  return output_of(
             "java -cp /usr/share/java/hdrhistogram.jar org.HdrHistogram.HistogramLogProcessor "
             "-outputValueUnitRatio 1000 -i '" +
             log.string() + "' -tag " + tag + " 2>&1")
      .text;
}

/// The lines of a percentile output that hold numbers.
std::vector<std::array<double, 3>> percentiles(const std::string& text) {
  std::vector<std::array<double, 3>> rows;
  for (const std::string& line : lines_of(text)) {
    std::istringstream numbers(line);
    std::array<double, 3> row{};
    if (numbers >> row[0] >> row[1] >> row[2]) rows.push_back(row);
  }
  return rows;
}

TEST(HdrLogs, AreReadByHdrHistogramsOwnProgram) {
  const Scratch scratch;
  const Outcome run = lockbench(scratch, short_run({"local-mutex", "--hold", "exp(50us)", "--out",
                                                    "r.json", "--hdr", "deep/er"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = read_result(scratch / "r.json");
  for (const char* tag : {"acquire", "hold", "release", "handoff"}) {
    const Json& ours = run_of(result, "local-mutex").at(tag);
    // With the waits that the run's end cut off.
    const double samples =
        ours.at("count").get<double>() + ours.at("censored").at("count").get<double>();
    if (samples == 0) continue;
    const auto theirs = percentiles(processed(scratch / "deep/er/local-mutex.hlog", tag));
    ASSERT_GT(theirs.size(), 10U) << tag << ": is libhdrhistogram-java there, and java?";
    EXPECT_EQ(theirs.back()[2], samples);
    EXPECT_NEAR(theirs.back()[0], ours.at("max").get<double>() * 1e6, theirs.back()[0] * 0.0011);
    for (const auto& [value, share, count] : theirs) {
      if (share != 0.5) continue;
      EXPECT_NEAR(value, ours.at("p50").get<double>() * 1e6, value * 0.03 + 0.002) << tag;
    }
    // One repetition: the log's percentiles are those of the other file.
    const auto written =
        percentiles(read_file(scratch / ("deep/er/local-mutex.1." + std::string(tag) + ".hgrm")));
    ASSERT_EQ(written.size(), theirs.size()) << tag;
    for (std::size_t i = 0; i < written.size(); ++i) {
      EXPECT_NEAR(written[i][0], theirs[i][0], 0.0015) << tag;
      EXPECT_NEAR(written[i][1], theirs[i][1], 1e-11) << tag;
      EXPECT_EQ(written[i][2], theirs[i][2]) << tag;
    }
  }
}

}  // namespace
}  // namespace lockbench::test
