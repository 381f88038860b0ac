#include <cstdio>
#include <cstdlib>

#include "cli/commands/commands.h"

int main(int argc, char** argv) {
  const int first = argc > 0 ? 1 : 0;
  const std::vector<std::string> args(argv + first, argv + argc);
  const int code = lockbench::cli::dispatch(args);
  std::fflush(stdout);
  // Skips static destructors: a library's thread or a pending name lookup may still use what they
  // destroy.
  std::_Exit(code);
}
