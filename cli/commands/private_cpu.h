#pragma once

#include "deployment/deployment.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {

/// The deployment must outlive it.
inline loadgen::PrivateCpu private_cpu_of(const deployment::Deployment& deployment) {
  return {.of = [&deployment](std::string_view set) { return deployment.cpu_seconds_of(set); },
          .all = [&deployment] { return deployment.cpu_seconds(); }};
}

}  // namespace lockbench::cli
