#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hazards/client_process.h"
#include "hazards/fault_env.h"
#include "hazards/scenario.h"
#include "hazards/timeline.h"
#include "loadgen/record/counter.h"

namespace lockbench::hazards {

class Play;

/// How an acquisition ended, by its client's own account.
struct Grant {
  AcquireOutcome outcome = AcquireOutcome::failed;
  TimePoint asked_at{}, answered_at{};
  std::optional<TimePoint> valid_until;  ///< nothing where it does not expire, or was not granted
  std::optional<std::uint64_t> fencing;
  int lease = -1;
  int commands = 0;
  int rounds = 0, split_votes = 0;  ///< of a quorum
  std::string reason;

  bool granted() const { return outcome == AcquireOutcome::acquired; }
};

/// What a client believes of a lease.
struct Belief {
  bool valid = false;
  /// When it stopped, or will stop, to believe in it: it learned of the loss, or its validity ends.
  /// Nothing: it goes on.
  std::optional<TimePoint> until;
};

/// How a client of a play differs from the others.
struct ActorSettings {
  int number = 0;               ///< its own among the clients of its process; 0: the play's next
  bool renews = true;           ///< by a timer, where the strategy does
  bool behind_line = false;     ///< its connections go through lines that can be cut
  bool checks_fencing = false;  ///< its counter is one that turns stale writes away
  std::string wait;             ///< in place of the strategy's own way to wait
  std::optional<Duration> renew_cap{};  ///< the longest that a timer may prolong one lease
  std::optional<int> wait_replicas{};   ///< how many must acknowledge; nothing: all
  /// How long it waits for one node of a quorum; nothing: as long as the strategy does. A busy
  /// machine must not be a fault too: whoever answers at all is waited for.
  std::optional<Duration> node_timeout = std::chrono::milliseconds(500);
};

/// A client process with a part in a play. What it does and is told goes into the timeline. Every
/// call is bounded, and throws StageFailure where the process does not do its part.
class Actor {
 public:
  Actor(Play& play, std::string name, const ActorSettings& settings);

  /// Acquires and releases another lock, so that connection and scripts are there, and counts the
  /// commands of both.
  void rehearse();
  int acquire_commands() const { return acquire_commands_; }
  int release_commands() const { return release_commands_; }

  /// With a wait of zero: one attempt.
  Grant acquire(Duration wait = {});
  /// An acquisition that the play cannot do without.
  Grant hold();
  /// Begins an acquisition; its answer is to be fetched.
  void ask(Duration wait);
  /// The same at this time, and what it is granted it gives back at once.
  void ask_and_release(Duration wait, TimePoint at);
  /// Until it has found the lock taken and waits.
  void await_waiting();
  Grant answer();
  /// Nothing if there is none yet by then: it is still to be fetched.
  std::optional<Grant> answer_until(TimePoint deadline);

  ReleaseOutcome release(const Grant& grant);
  /// Begins a release whose answer is to be fetched.
  void begin_release(const Grant& grant);
  ReleaseOutcome end_release();
  RenewOutcome renew(const Grant& grant, Duration ttl);
  /// What it believes now, or as soon as it stops to within that time.
  Belief belief(const Grant& grant, Duration within = {});
  /// The protected counter: read, and written back plus one.
  void read(const Grant& grant);
  loadgen::WriteResult write(const Grant& grant);

  void arm(CommandFault::Action action, CommandFault::Place place, int command);
  /// Its wall clock, by so much.
  void shift_clock(Duration by);
  void kill();
  void stop();
  void resume();
  /// At a fault that was armed.
  void await_death();
  void await_stop();

  /// To the store, or to its first node.
  testbed::Proxy& line() { return *lines_.front(); }
  /// To each of the stage's nodes.
  const std::vector<std::unique_ptr<testbed::Proxy>>& lines() { return lines_; }
  const std::string& name() const { return name_; }

 private:
  nlohmann::json call(const nlohmann::json& request);
  /// What it says next; nothing if it says nothing in time.
  std::optional<nlohmann::json> hear(Duration within);
  nlohmann::json receive(Duration within);
  nlohmann::json acquire_request(Duration wait) const;
  Grant to_grant(const nlohmann::json& answer);
  ReleaseOutcome to_release(const nlohmann::json& answer);

  Play& play_;
  const std::string name_;
  std::vector<std::unique_ptr<testbed::Proxy>> lines_;
  ClientProcess process_;
  Duration wait_{};  ///< of what was asked last
  int acquire_commands_ = 0, release_commands_ = 0;
};

using Fact = std::variant<bool, std::int64_t, double, std::string>;

/// One strategy on one stage, as a scenario sees it. For one thread.
class Play {
 public:
  /// `key`: the beginning of its keys; with a brace that is left open, so that all that belongs to
  /// one lives on one node.
  Play(House& house, std::shared_ptr<Stage> stage, const Descriptor& strategy, std::string key);

  const Traits& traits() const { return strategy_.traits; }
  /// How many commands its protocol takes to acquire, as it declares.
  int declared_acquire_commands() const {
    return static_cast<int>(strategy_.acquire_commands.size());
  }
  /// A client on the stage; lives as long as the play.
  Actor& client(std::string_view name, const ActorSettings& settings = {});
  Stage& stage() { return *stage_; }

  /// What clients ask for; once a lock was granted that lasts longer than asked, that.
  Duration ttl() const { return ttl_; }
  void ask_for_ttl(Duration ttl);
  /// From when a lock should begin to be free at the latest, to when it counts as stuck: it may
  /// take a TTL until it is free, and 5 more are waited.
  Duration patience() const { return 6 * ttl_; }

  const std::string& key() const { return key_; }
  /// The next actors work on another lock.
  void change_key();

  /// What stands in the counter, and how many writes were accepted.
  std::uint64_t counter();
  std::uint64_t accepted_writes() const { return accepted_writes_; }

  Timeline& timeline() { return timeline_; }
  /// The director's own hand: a fault.
  void tell(std::string what) { timeline_.add_now("fault", std::move(what)); }
  void note(const std::string& name, Fact fact) { evidence_[name] = std::move(fact); }
  void note(const std::string& name, Duration duration) { evidence_[name] = seconds(duration); }
  const std::map<std::string, Fact>& evidence() const { return evidence_; }

 private:
  friend class Actor;

  House& house_;
  const std::shared_ptr<Stage> stage_;
  const Descriptor& strategy_;
  const std::string first_key_;
  std::string key_;
  int keys_ = 1, clients_ = 0;
  Duration ttl_;
  std::uint64_t accepted_writes_ = 0;
  Timeline timeline_;
  std::map<std::string, Fact> evidence_;
  std::deque<Actor> actors_;  ///< go first
};

}  // namespace lockbench::hazards
