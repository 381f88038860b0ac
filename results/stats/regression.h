#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::results {

struct Difference;

/// A difference of B from A that counts as a regression: "acquire.p99>+10%",
/// "sections_per_second<-5%", "handoff.p50>+200us", "audit.lost_updates>+0".
struct Regression {
  std::string text;    ///< as it was given
  std::string figure;  ///< see figures.h
  bool more = true;    ///< B exceeds A by more than the bound, or else falls below it by more
  bool is_share = true;
  double bound = 0;  ///< at least 0; a share of A (0.1: 10 %), or in the figure's own unit
};

/// FIGURE > + NUMBER UNIT or FIGURE < - NUMBER UNIT, with %, ns, us, ms, s, m, h or none. The error
/// is one line that names the mistake and what is allowed.
tl::expected<Regression, std::string> parse_regression(std::string_view text);

/// The bound as a change of this figure, in the terms of Difference::change: negative where B must
/// not fall below A.
double bound_of(const Regression& regression, const Difference& difference);

}  // namespace lockbench::results
