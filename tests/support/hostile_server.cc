#include "tests/support/hostile_server.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <list>

namespace lockbench::test {
namespace {

constexpr std::size_t kFloodBytes = std::size_t{64} << 20;
constexpr std::size_t kBlockBytes = std::size_t{64} << 10;

}  // namespace

std::string Misdeed::name() const {
  static constexpr std::array kNames{"none",
                                     "answer ",
                                     "flood of ",
                                     "silence",
                                     "half an answer, then silence",
                                     "reset",
                                     "half an answer, then reset"};
  std::string text = kNames.at(static_cast<std::size_t>(kind));
  for (const char c : bytes.substr(0, 60)) text += c >= ' ' && c <= '~' ? c : '.';
  return text;
}

std::vector<Misdeed> misdeeds(const std::vector<std::string>& answers,
                              const std::vector<std::string>& floods) {
  std::vector<Misdeed> all;
  all.reserve(answers.size() + floods.size() + 4);
  for (const std::string& answer : answers) all.push_back({Misdeed::Kind::answer, answer});
  for (const std::string& flood : floods) all.push_back({Misdeed::Kind::flood, flood});
  for (const auto kind : {Misdeed::Kind::silence, Misdeed::Kind::half_then_silence,
                          Misdeed::Kind::reset, Misdeed::Kind::half_then_reset}) {
    all.push_back({kind, {}});
  }
  return all;
}

struct HostileServer::Peer {
  Peer(int descriptor, std::unique_ptr<Speaker> with) : fd(descriptor), speaker(std::move(with)) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { ::close(fd); }

  bool wants_to_send() const { return !out.empty() || flood_left > 0; }

  void send_some() {
    if (out.empty() && flood_left > 0) {
      while (out.size() < kBlockBytes) out += flood;
      flood_left -= std::min(flood_left, out.size());
    }
    const ssize_t sent = ::send(fd, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) out.erase(0, static_cast<std::size_t>(sent));
    if (out.empty() && resets) reset();
  }

  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    gone = true;
  }

  const int fd;
  const std::unique_ptr<Speaker> speaker;
  std::string received, out, flood;
  std::size_t flood_left = 0;
  bool silent = false, resets = false, gone = false;
};

HostileServer::HostileServer(MakeSpeaker make_speaker, Plan plan)
    : make_speaker_(std::move(make_speaker)),
      plan_(std::move(plan)),
      end_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { serve(); }) {}

HostileServer::~HostileServer() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(end_, &one, sizeof one));
  thread_.join();
  ::close(end_);
}

std::vector<HostileServer::Exchange> HostileServer::exchanges() const {
  const std::scoped_lock lock(mutex_);
  return exchanges_;
}

void HostileServer::serve() {
  std::list<Peer> peers;
  std::vector<pollfd> polled;
  while (true) {
    polled = {{end_, POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    for (const Peer& peer : peers) {
      const int events = peer.wants_to_send() ? POLLIN | POLLOUT : POLLIN;
      polled.push_back({peer.fd, static_cast<short>(events), 0});
    }
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    auto next = polled.begin() + 2;
    for (Peer& peer : peers) {
      const short ready = (next++)->revents;
      if ((ready & (POLLERR | POLLHUP)) != 0) peer.gone = true;
      if ((ready & POLLIN) != 0 && !peer.gone) receive(peer);
      if (peer.wants_to_send() && !peer.gone) peer.send_some();
    }
    peers.remove_if([](const Peer& peer) { return peer.gone; });
    if (polled[1].revents == 0) continue;
    const int accepted = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0) continue;
    const int on = 1;
    ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Peer& peer = peers.emplace_back(accepted, make_speaker_());
    peer.out = peer.speaker->opening();
  }
}

void HostileServer::receive(Peer& peer) {
  std::array<char, 16384> bytes{};
  const ssize_t got = ::recv(peer.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) {
    peer.gone = true;
    return;
  }
  if (peer.silent || peer.resets || peer.flood_left > 0) return;
  peer.received.append(bytes.data(), static_cast<std::size_t>(got));
  while (!peer.silent && !peer.resets && !peer.gone) {
    const std::size_t length = peer.speaker->request_length(peer.received);
    if (length == 0) return;
    const std::string request = peer.received.substr(0, length);
    peer.received.erase(0, length);
    treat(peer, request);
  }
}

void HostileServer::treat(Peer& peer, std::string_view request) {
  std::string right = peer.speaker->answer(request);
  if (peer.speaker->is_prelude(request)) {
    peer.out += right;
    return;
  }
  ++requests_;
  const bool struck = plan_.misdeed.kind != Misdeed::Kind::none &&
                      (requests_ == plan_.at || (plan_.ever && requests_ > plan_.at));
  std::string sent;
  if (struck) {
    strike(peer, request, right, sent);
  } else {
    sent = std::move(right);
  }
  peer.out += sent;
  const std::scoped_lock lock(mutex_);
  exchanges_.push_back({std::string(request), std::move(sent)});
  if (peer.resets && peer.out.empty()) peer.reset();
}

void HostileServer::strike(Peer& peer, std::string_view request, const std::string& right,
                           std::string& sent) const {
  const Misdeed& misdeed = plan_.misdeed;
  const bool half = misdeed.kind == Misdeed::Kind::half_then_silence ||
                    misdeed.kind == Misdeed::Kind::half_then_reset;
  const std::string wrong = peer.speaker->addressed(misdeed.bytes, request);
  sent = half ? right.substr(0, right.size() / 2) : wrong;
  switch (misdeed.kind) {
    case Misdeed::Kind::none:
    case Misdeed::Kind::answer:
      return;
    case Misdeed::Kind::flood:
      sent += wrong;
      peer.flood = wrong;
      peer.flood_left = kFloodBytes;
      return;
    case Misdeed::Kind::silence:
    case Misdeed::Kind::half_then_silence:
      peer.silent = true;
      return;
    case Misdeed::Kind::reset:
    case Misdeed::Kind::half_then_reset:
      peer.resets = true;
      return;
  }
}

void side_by_side(std::size_t count, std::size_t at_once,
                  const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(count, at_once); ++i) {
    threads.emplace_back([&] {
      for (std::size_t index = next++; index < count; index = next++) work(index);
    });
  }
}

void play_all(const std::vector<Misdeed>& misdeeds, int requests,
              const std::function<void(const HostileServer::Plan&)>& play, int on_from) {
  constexpr std::size_t kAtOnce = 24;
  std::vector<HostileServer::Plan> plans;
  for (const Misdeed& misdeed : misdeeds) {
    for (int at = 1; at <= requests; ++at) plans.push_back({misdeed, at, false});
    plans.push_back({misdeed, on_from, true});
  }
  side_by_side(plans.size(), kAtOnce, [&](std::size_t index) {
    const HostileServer::Plan& plan = plans[index];
    SCOPED_TRACE(plan.misdeed.name() + " at " + std::to_string(plan.at) + (plan.ever ? " on" : ""));
    play(plan);
  });
}

}  // namespace lockbench::test
