#pragma once

#include <iostream>

#include "tests/integration/support/documents.h"

namespace lockbench::test {

/// Whether all runs certify themselves undisturbed. If not, their figures mean nothing: prints that
/// the test is inconclusive, and why.
inline bool are_conclusive(const Json& runs) {
  for (const Json& run : runs) {
    const Json& generator = run.at("generator");
    if (generator.at("valid")) continue;
    std::cout << "inconclusive: " << run.at("strategy") << ": " << generator.at("reasons") << "\n";
    return false;
  }
  return true;
}

}  // namespace lockbench::test
