#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/support/program.h"

namespace lockbench::test {

/// Hosts played on this machine: network namespaces with addresses of their own on one bridge,
/// which this process makes and removes. Needs root. Whatever fails throws std::runtime_error.
class Hosts {
 public:
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Of this machine, as all hosts reach it: servers listen there.
  std::string server_address() const { return subnet_ + "254"; }
  /// mpirun on the first of them, with a rank on each, of `program` with `arguments`.
  std::unique_ptr<Program> mpirun(const Scratch& scratch, const std::vector<std::string>& options,
                                  const std::vector<std::string>& arguments) const;

 private:
  std::string name(int host) const { return prefix_ + std::to_string(host); }
  std::string link(int host) const { return prefix_ + "v" + std::to_string(host); }
  std::string address(int host) const { return subnet_ + std::to_string(host + 1); }
  void make() const;
  void remove() const;
  /// In the place of ssh.
  void write_agent(const Scratch& scratch) const;

  const int count_;
  const std::string prefix_, subnet_;
};

/// mpirun on this host alone.
std::unique_ptr<Program> mpirun_here(const Scratch& scratch, int ranks,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& arguments);

}  // namespace lockbench::test
