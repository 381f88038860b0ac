#pragma once

#include <string>
#include <vector>

#include "tests/integration/support/program.h"

namespace lockbench::test {

/// lockbench with these arguments behind a program that changes its surroundings, such as prlimit.
struct Wrapped {
  std::vector<std::string> arguments;
  Setting setting;
};
Wrapped under(std::vector<std::string> wrapper, const std::vector<std::string>& arguments);
/// Behind a line of the shell, in which "$@" stands for lockbench with its arguments.
Wrapped under_shell(const std::string& line, const std::vector<std::string>& arguments);
/// Behind such a line, with file systems of its own to mount.
Wrapped under_mounts(const std::string& line, const std::vector<std::string>& arguments);
/// As another user, who has no name and no processes, if this is root. The scratch folder becomes
/// that user's.
std::vector<std::string> as_stranger(const Scratch& scratch);

Outcome run(const Scratch& scratch, const Wrapped& wrapped);

}  // namespace lockbench::test
