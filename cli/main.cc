#include <string>
#include <vector>

#include "cli/commands/dispatch.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return lockbench::cli::dispatch(args);
}
