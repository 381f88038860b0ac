#pragma once

#include <sys/types.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deployment/failure.h"
#include "hazards/messages.h"
#include "hazards/scenario.h"
#include "history/log.h"
#include "strategies/carrier.h"

namespace lockbench::hazards {

using deployment::Failure;
using deployment::need;

/// The time of a play: that of its carrier, which is virtual on simulated machines.
struct PlayClock {
  static TimePoint now() { return Carrier::current().now(); }
  static void sleep_until(TimePoint due) { Carrier::current().wait(nullptr, due, {}); }
  static void sleep_for(Duration time) { sleep_until(now() + time); }
};

/// Whether `what` is true in time; asks at least once, and then every millisecond.
bool comes_true(Duration within, const std::function<bool()>& what);

/// Who did or learned what in a play, and when.
struct TimelineEntry {
  TimePoint at;
  std::string who, what;
};

/// The fault cannot be caused for this client. The play is then `not-played`.
class NotPlayable : public Failure {
 public:
  using Failure::Failure;
};

/// A step of the play itself was late, for example because the machine stalled. The play is then
/// `not-played`, as it proves nothing about the lock.
class Disturbed : public NotPlayable {
 public:
  using NotPlayable::NotPlayable;
};

/// Throws Disturbed if `step` happened later than `due` by more than `tolerance`.
void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance);

/// Throws Failure if the store gave the acquisition no answer.
void require_answer(const Grant& grant);

/// A process with one client, which a play controls by messages. Not thread-safe. Throws Failure if
/// the process does not obey. The destructor kills it if it still runs.
class ControlledClient {
 public:
  virtual ~ControlledClient() = default;

  /// The setup comes first.
  virtual void send(const ClientSetup& setup) = 0;
  virtual void send(const Request& request) = 0;
  /// The next message. Empty if none arrives in time or the process has died.
  virtual std::optional<Answer> receive(Duration within) = 0;

  virtual void kill() = 0;
  virtual void stop() = 0;
  virtual void resume() = 0;
  /// Waits until an armed fault has killed or stopped the process.
  virtual void await_death() = 0;
  virtual void await_stop() = 0;
};

/// A real one (`PROGRAM client`), over a socket. It ends with the thread that started it.
class ClientProcess final : public ControlledClient {
 public:
  explicit ClientProcess(const std::filesystem::path& program);
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  ~ClientProcess() override;

  void send(const ClientSetup& setup) override { send_message(setup); }
  void send(const Request& request) override { send_message(request); }
  std::optional<Answer> receive(Duration within) override;

  void kill() override;
  void stop() override;
  void resume() override;
  void await_death() override { await_change(0, "die"); }
  void await_stop() override;

 private:
  template <class Message>
  void send_message(const Message& message) {
    if (!hazards::send(socket_, message)) throw Failure("a client process has ended");
  }
  void signal(int number);
  /// `options`: for waitpid.
  void await_change(int options, const char* change);

  pid_t pid_ = -1;
  int socket_ = -1;  ///< this side's end
};

/// Where plays take place: on real machines, or on simulated ones.
class Venue {
 public:
  virtual ~Venue() = default;

  /// Servers for plays of this strategy.
  virtual tl::expected<std::shared_ptr<PrivateStore>, NotStarted> store(const Descriptor& strategy,
                                                                        Setup setup) = 0;
  virtual std::unique_ptr<ControlledClient> start_client() = 0;
  /// In front of the server on this port, for the client that was started last.
  virtual std::unique_ptr<testbed::Line> line_to(std::uint16_t port) = 0;
  /// For a client program.
  virtual std::unique_ptr<testbed::ClockShim> make_clock() = 0;
  /// A Redis that no fault touches, with the protected counters; and the value of this one.
  virtual std::string counter_url() const = 0;
  virtual std::uint64_t counter(const std::string& key) = 0;
  /// The beginning of a play's keys. It ends inside an open brace: the hash tag keeps all data of
  /// one lock on one Redis Cluster node.
  virtual std::string fresh_key() = 0;
  /// Takes the operations of all plays; may be null.
  virtual history::Log* history() const { return nullptr; }
};

class Play;

/// A client process that a play controls. Its actions and answers go into the timeline. Every call
/// is bounded in time, and throws Failure if the process does not obey.
class Actor {
 public:
  Actor(Play& play, std::string name, const ActorSettings& settings);

  /// Acquires, renews and releases another key: opens connections, loads scripts, and counts the
  /// commands of each. Renews only what a client can renew.
  void warm_up();
  /// Throws NotPlayable for a client program, whose commands do not show.
  int acquire_commands() const { return require_commands(), acquire_commands_; }
  int renew_commands() const { return require_commands(), renew_commands_; }
  int release_commands() const { return require_commands(), release_commands_; }

  /// A wait of zero means one attempt. Throws Failure if the store gave no answer: only a real
  /// answer proves something.
  Grant acquire(Duration wait = {});
  /// Like acquire(), but returns an unanswered grant instead of throwing.
  Grant try_acquire(Duration wait);
  /// Acquires, or throws Failure.
  Grant must_acquire();
  /// Only sends the request; finish_acquire() returns the answer, like acquire(), and throws
  /// Disturbed if the client asked late. With `at`, the client asks at that time, and releases the
  /// lock before it answers.
  void start_acquire(Duration wait, std::optional<TimePoint> at = {});
  /// Returns when the client has found the lock taken and waits.
  void await_waiting();
  Grant finish_acquire();
  /// Like finish_acquire(), but returns an unanswered grant instead of throwing.
  Grant finish_any_acquire();

  ReleaseOutcome release(const Grant& grant);
  /// Only sends the request; finish_release() returns the answer.
  void start_release(const Grant& grant);
  ReleaseOutcome finish_release();
  /// Of a client program: a release that is cancelled after this time.
  ReleaseOutcome cancelled_release(const Grant& grant, Duration after);
  /// Of a client program: keeps the application's thread busy. Only sends the request;
  /// finish_work() waits for its end, and throws NotPlayable if the program cannot.
  void start_work(Duration busy);
  void finish_work();
  RenewOutcome renew(const Grant& grant, Duration ttl);
  /// Only sends the request, for a client that dies before it can answer.
  void start_renew(const Grant& grant, Duration ttl);
  /// Returns as soon as the lease is no longer valid, at the latest after `within`.
  Belief belief(const Grant& grant, Duration within = {});
  /// read() reads the protected counter; write() writes the value read, plus one.
  void read(const Grant& grant);
  loadgen::WriteResult write(const Grant& grant);

  void arm(CommandFault::Action action, CommandFault::Place place, int command);
  /// Moves the client's wall clock.
  void shift_clock(Duration by);
  void kill();
  void stop();
  void resume();
  /// Waits until a fault set with arm() has killed or stopped the process.
  void await_death();
  void await_stop();

  /// One to each node of the store.
  const std::vector<std::unique_ptr<testbed::Line>>& lines() { return lines_; }
  const std::string& name() const { return name_; }

 private:
  Answer call(const Request& request);
  /// The answer to a request that does not wait for the lock.
  Answer answer(Duration within);
  Answer receive(Duration within);
  Request acquire_request(Duration wait) const;
  /// Adds the outcome of a request to the timeline.
  ReleaseOutcome tell_release(const Answer& answer);
  void tell_history(const Grant& grant);
  /// In the history, a client that dies holds its locks no longer.
  void tell_death(const std::string& how);
  void begin_release(const Grant& grant);
  void require_commands() const;

  Play& play_;
  const std::string name_;
  std::vector<std::unique_ptr<testbed::Line>> lines_;
  std::unique_ptr<testbed::ClockShim> clock_;  ///< of a client program
  const std::unique_ptr<ControlledClient> process_;
  history::Process history_;
  std::string asked_for_;            ///< name of the lock
  bool releases_at_once_ = false;    ///< that one
  std::map<int, std::string> held_;  ///< names of the locks by lease, until their release
  Duration wait_{};                  ///< of the latest start_acquire()
  TimePoint asks_at_{};              ///< when the client should ask
  int acquire_commands_ = 0, renew_commands_ = 0, release_commands_ = 0;
};

using Fact = std::variant<bool, std::int64_t, double, std::string>;

/// One strategy on one set of servers, as a scenario sees it. Not thread-safe.
class Play {
 public:
  /// The play has its own key.
  Play(Venue& venue, std::shared_ptr<PrivateStore> store, const Descriptor& strategy);

  const Traits& traits() const { return strategy_.traits; }
  bool of_program() const { return !strategy_.program.empty(); }
  /// Number of acquire commands that the strategy declares.
  int declared_acquire_commands() const {
    return static_cast<int>(strategy_.acquire_commands.size());
  }
  /// Starts a client process; it lives as long as the play.
  Actor& client(std::string_view name, const ActorSettings& settings = {});
  PrivateStore& store() { return *store_; }

  /// The TTL that clients ask for, or the longer TTL that the store granted.
  Duration ttl() const { return ttl_; }
  void set_ttl(Duration ttl) { ttl_ = ttl; }
  /// A lock that no client gets within this time counts as stuck: one TTL until it expires, and
  /// five more.
  Duration stuck_after() const { return 6 * ttl_; }
  /// A step that is late by more than this disturbs the play.
  Duration tolerance() const;
  /// Returns at `due`, or immediately if that has passed. Throws Disturbed if it returns late.
  void wait_until(TimePoint due) const;

  /// For the history.
  void set_name(std::string name) { name_ = std::move(name); }
  /// The history's name of the current lock: "late-release/redis-setnx:17".
  std::string lock_name() const;
  const std::string& key() const { return key_; }
  /// From now on, all clients use another lock.
  void change_key();

  /// The counter's value, and the number of writes that it accepted.
  std::uint64_t counter();
  std::uint64_t accepted_writes() const { return accepted_writes_; }

  /// In the order of time. Events may come out of order: an answer carries the time at which the
  /// client received it.
  const std::vector<TimelineEntry>& timeline() const { return timeline_; }
  void tell(TimePoint at, std::string who, std::string what) {
    const auto later = std::ranges::upper_bound(timeline_, at, {}, &TimelineEntry::at);
    timeline_.insert(later, {at, std::move(who), std::move(what)});
  }
  void tell_now(std::string who, std::string what) {
    tell(PlayClock::now(), std::move(who), std::move(what));
  }
  void record_fault(std::string what) { tell_now("fault", std::move(what)); }
  void note(const std::string& name, Fact fact) { evidence_[name] = std::move(fact); }
  void note(const std::string& name, Duration duration) { evidence_[name] = seconds(duration); }
  const std::map<std::string, Fact>& evidence() const { return evidence_; }

 private:
  friend class Actor;

  Venue& venue_;
  const std::shared_ptr<PrivateStore> store_;
  const Descriptor& strategy_;
  const std::string first_key_;
  std::string key_, name_;
  int keys_ = 1, clients_ = 0;
  Duration ttl_;
  std::uint64_t accepted_writes_ = 0;
  std::vector<TimelineEntry> timeline_;
  std::map<std::string, Fact> evidence_;
  std::deque<Actor> actors_;  ///< destroyed first: they use the members above
};

}  // namespace lockbench::hazards
