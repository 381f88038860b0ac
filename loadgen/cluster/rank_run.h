#pragma once

#include <string>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/part.h"
#include "loadgen/run/joint_run.h"

namespace lockbench::loadgen::cluster {

// What ranks say of a run. `ticket` is that of its order.

struct Ready {
  int ticket = 0;
  std::string why;  ///< the clients are not connected; empty: they are
};
struct Start {
  int ticket = 0;
  Duration lead{};  ///< until the load begins
};
struct Started {
  int ticket = 0;
};
struct PartReport {
  int ticket = 0;
  Part part;
};
struct Over {
  int ticket = 0;
  bool keep = false;  ///< the files of the ranks are needed
};
struct Leave {
  bool together = true;  ///< no rank was lost
};

/// What a rank does of a run in the same way as all others: it keeps what it has recorded in a file
/// of its own, every ten seconds, so that a SIGKILL costs no more.
class RankRun : public JointRun {
 public:
  /// The link must outlive it.
  RankRun(Link& link, Order order, Hello hello);

  Share share() const override { return share_; }
  void note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) override;

 protected:
  Part part_of(const PartOfRun& of) const;
  void keep(const Part& part);
  /// Removes the file.
  void forget_file() const;

  Link& link_;
  const Order order_;
  const Hello hello_;
  const Share share_;

 private:
  std::vector<Samples> acquired_;  ///< in each second of the series
  TimePoint next_file_;
  bool saved_ = false;
};

}  // namespace lockbench::loadgen::cluster
