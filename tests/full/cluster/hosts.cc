#include "tests/full/cluster/hosts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace lockbench::test {
namespace {

void must(const std::string& command) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c)
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("it fails: " + command);
  }
}

Setting setting(std::string program) {
  return {
      .program = std::move(program),
      .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
}

}  // namespace

Hosts::Hosts(int count)
    : count_(count),
      prefix_(fmt::format("lb{}h", getpid() % 100'000)),
      subnet_(fmt::format("10.{}.{}.", 100 + getpid() / 250 % 100, getpid() % 250)) {
  try {
    make();
  } catch (...) {
    remove();
    throw;
  }
}

Hosts::~Hosts() { remove(); }

void Hosts::make() const {
  const std::string bridge = prefix_ + "br";
  must(fmt::format("ip link add {} type bridge", bridge));
  must(fmt::format("ip address add {}/24 dev {}", server_address(), bridge));
  must(fmt::format("ip link set {} up", bridge));
  for (int host = 0; host < count_; ++host) {
    must(fmt::format("ip netns add {}", name(host)));
    must(fmt::format("ip link add {} type veth peer name eth0 netns {}", link(host), name(host)));
    must(fmt::format("ip link set {} master {} up", link(host), bridge));
    must(fmt::format("ip -n {} address add {}/24 dev eth0", name(host), address(host)));
    must(fmt::format("ip -n {} link set eth0 up", name(host)));
    must(fmt::format("ip -n {} link set lo up", name(host)));
  }
}

void Hosts::remove() const {
  const auto try_to = [](const std::string& command) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c)
    (void)!std::system((command + " 2>/dev/null").c_str());
  };
  for (int host = 0; host < count_; ++host) {
    // A deleted namespace keeps its links for a while, and their names could not be used again.
    try_to("ip link delete " + link(host));
    try_to("ip netns delete " + name(host));
  }
  try_to(fmt::format("ip link delete {}br", prefix_));
}

void Hosts::write_agent(const Scratch& scratch) const {
  std::string text = "#!/bin/sh\naddress=$1\nshift\ncase $address in\n";
  for (int host = 0; host < count_; ++host) {
    text += fmt::format("  {}) name={} ;;\n", address(host), name(host));
  }
  text += "esac\nexec ip netns exec $name unshare --uts sh -c \"hostname $name; $*\"\n";
  ::chmod(scratch.write("agent", text).c_str(), 0700);
}

std::unique_ptr<Program> Hosts::mpirun(const Scratch& scratch,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& arguments) const {
  write_agent(scratch);
  std::string hosts;
  for (int host = 0; host < count_; ++host) hosts += (host > 0 ? "," : "") + address(host);
  const std::string net = subnet_ + "0/24";
  std::vector<std::string> all = words("netns exec " + name(0) + " unshare --uts sh -c");
  all.push_back(fmt::format("hostname {}; exec \"$@\"", name(0)));
  const std::string agent = (scratch / "agent").string();
  for (const std::string& word :
       words(fmt::format("sh mpirun --oversubscribe -np {} --host {} --mca plm_rsh_agent {} --mca "
                         "oob_tcp_if_include {} --mca btl_tcp_if_include {}",
                         count_, hosts, agent, net, net))) {
    all.push_back(word);
  }
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<Program>(scratch, all, setting("/usr/sbin/ip"));
}

std::unique_ptr<Program> mpirun_here(const Scratch& scratch, int ranks,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--oversubscribe", "-np", std::to_string(ranks)};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<Program>(scratch, all, setting("/usr/bin/mpirun"));
}

}  // namespace lockbench::test
