#pragma once

#include <functional>
#include <stdexcept>

#include "loadgen/fibers/pool.h"

namespace lockbench::test {

/// Runs the body as fibers::on_virtual_time() does. Throws std::runtime_error where it cannot.
inline void on_virtual_time(const std::function<void()>& body) {
  if (auto played = fibers::on_virtual_time(body); !played) {
    throw std::runtime_error(played.error());
  }
}

}  // namespace lockbench::test
