#include <zookeeper/zookeeper.h>

#include <utility>

#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {
namespace {

/// A no is a sign of life too.
bool is_lost(const Batch& beat) {
  const int code = beat.answers.front().code;
  return code != ZOK && code != ZNONODE;
}

}  // namespace

void Session::keep_alive(Env& env) {
  static const Request sign_of_life{.kind = Request::Kind::exists, .path = "/"};
  const CommandInfo info = told(sign_of_life, {});
  const TimePoint now = env.now();
  bool due = false;
  std::shared_ptr<Batch> ended;
  {
    const std::scoped_lock lock(mutex_);
    if (beat_ && beat_->left == 0) ended = std::exchange(beat_, nullptr);
    // The server may have ended it long since, without a chance to say so.
    if (state_ == State::connecting && !bound_.empty() && now >= contact_ + timeout_) {
      end_locked(now);
    }
    due = !beat_ && !bound_.empty() && state_ == State::connected && now - contact_ >= timeout_ / 3;
  }
  if (ended) {
    const bool lost = is_lost(*ended);
    env.after_command(info, lost ? CommandEnd::lost : CommandEnd::answered);
  }
  if (!due) return;
  const bool cut = env.before_command(info) == CommandFate::drop;
  if (cut || !send_sign_of_life(sign_of_life, now)) env.after_command(info, CommandEnd::lost);
}

bool Session::send_sign_of_life(const Request& request, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  if (!connection_) return false;
  auto batch = std::make_shared<Batch>(1, now);
  if (send(connection_, request, batch, 0) != ZOK) return false;
  beat_ = std::move(batch);
  return true;
}

}  // namespace lockbench::zookeeper
