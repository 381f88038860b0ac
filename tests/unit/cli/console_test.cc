#include "cli/console/console.h"

#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

/// What a console prints for a note, a warning and a status line.
std::string printed(const char* locale) {
  const test::Variable of_all("LC_ALL", locale);
  Written written;
  {
    Console console(written.stream(), true, false);
    console.note("acquire p99 12 µs");
    console.warn("±5 %");
    console.status("3 µs");
  }
  return written.text();
}

TEST(Console, IsAsciiUnlessTheLocaleIsUtf8) {
  EXPECT_EQ(printed("C"), "acquire p99 12 us\n+-5 %\n\r\x1b[K3 us\r\x1b[K");
  EXPECT_EQ(printed("C.UTF-8"), "acquire p99 12 µs\n±5 %\n\r\x1b[K3 µs\r\x1b[K");
}

}  // namespace
}  // namespace lockbench::cli
