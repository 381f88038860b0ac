#include "tests/integration/machine/under.h"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "tests/folders.h"

namespace lockbench::test {
namespace {

constexpr uid_t kStranger = 64123;

}  // namespace

Wrapped under(std::vector<std::string> wrapper, const std::vector<std::string>& arguments) {
  Wrapped wrapped;
  wrapped.setting.program = wrapper.front();
  wrapped.arguments.assign(wrapper.begin() + 1, wrapper.end());
  wrapped.arguments.push_back(std::filesystem::path(LOCKBENCH_BINARY_DIR) / "lockbench");
  wrapped.arguments.insert(wrapped.arguments.end(), arguments.begin(), arguments.end());
  return wrapped;
}

Wrapped under_shell(const std::string& line, const std::vector<std::string>& arguments) {
  return under({"/bin/bash", "-o", "pipefail", "-c", line, "bash"}, arguments);
}

Wrapped under_mounts(const std::string& line, const std::vector<std::string>& arguments) {
  std::vector<std::string> wrapper{"/usr/bin/unshare", "--mount"};
  if (geteuid() != 0) wrapper.emplace_back("--map-root-user");
  for (const char* word : {"/bin/bash", "-e", "-c"}) wrapper.emplace_back(word);
  wrapper.push_back(line);
  wrapper.emplace_back("bash");
  return under(wrapper, arguments);
}

std::vector<std::string> as_stranger(const Scratch& scratch) {
  if (geteuid() != 0) return {"/usr/bin/env"};
  if (chown(scratch.path().c_str(), kStranger, kStranger) != 0) {
    throw std::runtime_error("cannot give away " + scratch.path().string());
  }
  const std::string id = std::to_string(kStranger);
  // It may go through root's home, where the program may be.
  return {"/usr/bin/setpriv",
          "--reuid=" + id,
          "--regid=" + id,
          "--clear-groups",
          "--inh-caps=+dac_read_search",
          "--ambient-caps=+dac_read_search"};
}

Outcome run(const Scratch& scratch, const Wrapped& wrapped) {
  return lockbench(scratch, wrapped.arguments, wrapped.setting);
}

}  // namespace lockbench::test
