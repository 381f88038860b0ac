#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "simulate/judge.h"

namespace lockbench::simulate {

/// What a hunt plays with one seed: clients, load, TTLs, faults and orders are drawn from it.
/// Shrinking leaves some out.
struct Trial {
  std::uint64_t seed = 0;
  std::optional<int> clients{}, sections{}, changes{};  ///< at most so many
  std::optional<std::vector<int>> faults{};             ///< of those drawn, these, from 0

  /// Reads "17" or "17,clients=2,sections=5,changes=0,faults=0+3" (any of these; faults=none). The
  /// error quotes it and says what is allowed.
  static tl::expected<Trial, std::string> parse(std::string_view text);
  /// In the form that parse() reads.
  std::string to_string() const;
};

/// How a trial ended.
struct Verdict {
  std::optional<Finding> finding{};
  std::uint64_t sections = 0;
  Trial trial;  ///< with its sizes
};

/// Plays the trial on the calling thread, until its end or its first finding. The same trial gives
/// the same verdict and trace everywhere. A stop ends it early. The error says why it could not
/// begin.
tl::expected<Verdict, std::string> play(const Descriptor& strategy, const Trial& trial,
                                        const Trace& trace = {}, const std::stop_token& stop = {});

/// Leaves out clients, sections, faults and changes of priorities as long as the same oracle still
/// finds something. Bounded by a number of plays. Returns the verdict of the smallest trial.
Verdict shrink(const Descriptor& strategy, Verdict verdict, const std::stop_token& stop = {});

}  // namespace lockbench::simulate
