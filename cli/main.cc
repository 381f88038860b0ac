#include <cstdio>
#include <cstdlib>

#include "cli/commands/commands.h"

int main(int argc, char** argv) {
  const int first = argc > 0 ? 1 : 0;
  const std::vector<std::string> args(argv + first, argv + argc);
  const int code = lockbench::cli::dispatch(args);
  std::fflush(stdout);
  // Without static destructors: a library's thread, a name that is still looked up or a push that
  // was given up may use what they would destroy.
  std::_Exit(code);
}
