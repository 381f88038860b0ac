// Servers that give wrong answers, at each point of every lock on etcd.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"
#include "tests/support/eventually.h"
#include "tests/support/fiber_lock.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using Message = google::protobuf::Message;

/// The server's reaction instead of the right answer.
struct EtcdMisdeed {
  std::string name;
  /// Changes the right answer; may ignore answers that it does not apply to.
  std::function<void(Message&)> change{};
  grpc::Status status{};
  bool silent = false;
};

/// An etcd on a free port that grants every lock, but misanswers its n-th request.
class HostileEtcd : etcdserverpb::KV::Service, etcdserverpb::Lease::Service {
 public:
  HostileEtcd(EtcdMisdeed misdeed, int at) : misdeed_(std::move(misdeed)), at_(at) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<etcdserverpb::KV::Service*>(this));
    builder.RegisterService(static_cast<etcdserverpb::Lease::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  HostileEtcd(const HostileEtcd&) = delete;
  HostileEtcd& operator=(const HostileEtcd&) = delete;
  ~HostileEtcd() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string url() const { return "etcd://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }
  /// The latest answer to a transaction, and the key that the transaction was to create.
  etcdserverpb::TxnResponse latest_txn() const {
    const std::scoped_lock lock(mutex_);
    return txn_;
  }
  std::string key() const {
    const std::scoped_lock lock(mutex_);
    return key_;
  }

 private:
  using Context = grpc::ServerContext;

  grpc::Status finish(Context* context, Message& answer) {
    if (++requests_ != at_) return grpc::Status::OK;
    if (misdeed_.change) misdeed_.change(answer);
    // Until the client gives up or the server ends.
    if (misdeed_.silent) (void)eventually([&] { return context->IsCancelled(); });
    return misdeed_.status;
  }

  grpc::Status Range(Context* context, const etcdserverpb::RangeRequest*,
                     etcdserverpb::RangeResponse* answer) override {
    return finish(context, *answer);
  }
  grpc::Status DeleteRange(Context* context, const etcdserverpb::DeleteRangeRequest*,
                           etcdserverpb::DeleteRangeResponse* answer) override {
    answer->set_deleted(1);
    return finish(context, *answer);
  }
  grpc::Status Txn(Context* context, const etcdserverpb::TxnRequest* request,
                   etcdserverpb::TxnResponse* answer) override {
    constexpr std::int64_t kRevision = 5;
    answer->mutable_header()->set_revision(kRevision);
    answer->set_succeeded(true);
    std::string key;
    for (const etcdserverpb::RequestOp& operation : request->success()) {
      etcdserverpb::ResponseOp& done = *answer->add_responses();
      if (operation.has_request_put()) {
        if (key.empty()) key = operation.request_put().key();
        done.mutable_response_put();
      } else if (operation.has_request_delete_range()) {
        done.mutable_response_delete_range();
      } else if (!operation.request_range().keys_only()) {
        done.mutable_response_range();  // there is no record
      } else {
        etcdserverpb::KeyValue& found = *done.mutable_response_range()->add_kvs();
        found.set_key(key);
        found.set_create_revision(kRevision);
      }
    }
    grpc::Status status = finish(context, *answer);
    const std::scoped_lock lock(mutex_);
    txn_ = *answer;
    if (!key.empty()) key_ = key;
    return status;
  }
  grpc::Status LeaseGrant(Context* context, const etcdserverpb::LeaseGrantRequest* request,
                          etcdserverpb::LeaseGrantResponse* answer) override {
    answer->set_id(++leases_);
    answer->set_ttl(request->ttl());
    return finish(context, *answer);
  }
  grpc::Status LeaseRevoke(Context* context, const etcdserverpb::LeaseRevokeRequest*,
                           etcdserverpb::LeaseRevokeResponse* answer) override {
    return finish(context, *answer);
  }
  grpc::Status LeaseKeepAlive(
      Context*, grpc::ServerReaderWriter<etcdserverpb::LeaseKeepAliveResponse,
                                         etcdserverpb::LeaseKeepAliveRequest>* stream) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    while (stream->Read(&request)) {
      etcdserverpb::LeaseKeepAliveResponse answer;
      answer.set_id(request.id());
      answer.set_ttl(1);
      if (misdeed_.change) misdeed_.change(answer);
      if (!stream->Write(answer)) break;
    }
    return misdeed_.status;
  }

  const EtcdMisdeed misdeed_;
  const int at_;
  int port_ = 0;
  std::atomic<int> requests_{0};
  std::atomic<std::int64_t> leases_{0};
  mutable std::mutex mutex_;
  etcdserverpb::TxnResponse txn_;
  std::string key_;
  std::unique_ptr<grpc::Server> server_;
};

/// Sets every number in the message to this one, including nested messages.
void set_numbers(Message& message, std::int64_t number) {
  const auto& fields = *message.GetDescriptor();
  const auto& access = *message.GetReflection();
  using Field = google::protobuf::FieldDescriptor;
  for (int i = 0; i < fields.field_count(); ++i) {
    const Field* const field = fields.field(i);
    if (field->cpp_type() == Field::CPPTYPE_INT64) access.SetInt64(&message, field, number);
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (access.HasField(message, field)) {
        set_numbers(*access.MutableMessage(&message, field), number);
      }
      continue;
    }
    for (int item = 0; item < access.FieldSize(message, field); ++item) {
      set_numbers(*access.MutableRepeatedMessage(&message, field, item), number);
    }
  }
}

/// A misdeed for transactions only.
EtcdMisdeed with_txn(std::string name,
                     const std::function<void(etcdserverpb::TxnResponse&)>& change) {
  return {.name = std::move(name), .change = [change](Message& message) {
            auto* const txn = dynamic_cast<etcdserverpb::TxnResponse*>(&message);
            if (txn != nullptr) change(*txn);
          }};
}

/// Adds a key to the result of the transaction's last operation.
void add_key(etcdserverpb::TxnResponse& txn, const std::string& name, std::int64_t revision) {
  if (txn.responses().empty()) txn.add_responses();
  auto& last = *txn.mutable_responses(txn.responses_size() - 1);
  etcdserverpb::KeyValue& found = *last.mutable_response_range()->add_kvs();
  found.set_key(name);
  found.set_create_revision(revision);
}

std::vector<EtcdMisdeed> etcd_misdeeds() {
  std::vector<EtcdMisdeed> all;
  all.push_back({.name = "an empty answer", .change = [](Message& answer) { answer.Clear(); }});
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t number :
       {Limits::min(), std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, Limits::max()}) {
    all.push_back({.name = "numbers " + std::to_string(number),
                   .change = [number](Message& answer) { set_numbers(answer, number); }});
  }
  all.push_back(
      with_txn("conditions that did not hold", [](auto& txn) { txn.set_succeeded(false); }));
  all.push_back(with_txn("no operations", [](auto& txn) { txn.clear_responses(); }));
  all.push_back(
      with_txn("one operation less", [](auto& txn) { txn.mutable_responses()->RemoveLast(); }));
  all.push_back(with_txn("one operation more", [](auto& txn) { txn.add_responses(); }));
  all.push_back(with_txn("operations of another kind", [](auto& txn) {
    for (auto& one : *txn.mutable_responses()) one.mutable_response_delete_range();
  }));
  all.push_back(with_txn("operations of no kind", [](auto& txn) {
    for (auto& one : *txn.mutable_responses()) one.Clear();
  }));
  all.push_back(with_txn("no keys", [](auto& txn) {
    for (auto& one : *txn.mutable_responses()) one.mutable_response_range()->Clear();
  }));
  all.push_back(with_txn("another key", [](auto& txn) { add_key(txn, "\x1b[2J", 1); }));
  all.push_back(with_txn("a thousand keys", [](auto& txn) {
    for (int i = 0; i < 1000; ++i) add_key(txn, "lockbench:hostile:{k}/a", 1);
  }));
  all.push_back(with_txn("five million bytes",
                         [](auto& txn) { add_key(txn, std::string(5'000'000, 'x'), 1); }));
  for (int code = 1; code <= 16; ++code) {
    all.push_back({.name = "status " + std::to_string(code),
                   .status = {static_cast<grpc::StatusCode>(code), "no\x1b[2J\nmore"}});
  }
  all.push_back({.name = "silence", .silent = true});
  return all;
}

using namespace std::chrono_literals;

/// Whether the transaction succeeded, with a possible revision, and found only its own key, or by
/// observation wrote the record.
bool was_granted(const HostileEtcd& etcd, bool observed) {
  const etcdserverpb::TxnResponse txn = etcd.latest_txn();
  const int operations = observed ? 1 : 2;
  if (!txn.succeeded() || txn.header().revision() <= 0 || txn.responses_size() != operations) {
    return false;
  }
  const auto& last = txn.responses(operations - 1);
  if (observed) return last.has_response_put();
  if (!last.has_response_range()) return last.has_response_put();  // chubby's guard
  const auto& found = last.response_range().kvs();
  return found.size() == 1 && found[0].key() == etcd.key() && found[0].create_revision() > 0;
}

TEST(HostileEtcdRead, TakesNoOtherKey) {
  const auto read = [](std::initializer_list<const char*> names, std::int64_t created) {
    const HostileEtcd server({.change =
                                  [&](Message& message) {
                                    auto& range =
                                        dynamic_cast<etcdserverpb::RangeResponse&>(message);
                                    for (const char* const name : names) {
                                      auto& found = *range.add_kvs();
                                      found.set_key(name);
                                      found.set_create_revision(created);
                                    }
                                  }},
                             1);
    const auto env = make_system_env(1);
    etcd::Connection connection(etcd::parse_endpoint(server.url()).value(), kPatience, *env);
    const auto found = connection.read({}, "k");
    return found ? (*found ? (*found)->name : "none") : found.error().message;
  };
  EXPECT_EQ(read({"k"}, 1), "k");
  EXPECT_EQ(read({}, 1), "none");
  EXPECT_TRUE(read({"other"}, 1).ends_with("expected the key"));
  EXPECT_TRUE(read({"k", "k"}, 1).ends_with("expected the key"));
  EXPECT_TRUE(read({"k"}, 0).ends_with("expected the key"));
}

class HostileEtcdTest : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileEtcdTest, GetsNoLockGrantedThatItDidNotGrant) {
  constexpr std::size_t kAtOnce = 12;
  HostileEtcd honest({}, 0);
  bool granted = false;
  live(
      *GetParam(), honest.url(), [&] { granted = true; }, kPatience);
  ASSERT_TRUE(granted) << "at an honest server";
  const std::vector<EtcdMisdeed> all = etcd_misdeeds();
  const auto requests = static_cast<std::size_t>(honest.requests());
  side_by_side(all.size() * requests, kAtOnce, [&](std::size_t index) {
    const EtcdMisdeed& misdeed = all[index / requests];
    const int at = static_cast<int>(index % requests) + 1;
    SCOPED_TRACE(misdeed.name + " at " + std::to_string(at));
    HostileEtcd etcd(misdeed, at);
    live(*GetParam(), etcd.url(),
         [&] { EXPECT_TRUE(was_granted(etcd, GetParam()->traits.observed)); });
  });
}

TEST_P(HostileEtcdTest, KeepsASessionOnlyByAnswersForIt) {
  if (GetParam()->traits.expiry != Expiry::session) return;  // it has none
  constexpr std::chrono::seconds kTtl = 4s;
  using Answer = etcdserverpb::LeaseKeepAliveResponse;
  const auto answer = [](std::int64_t id_offset, std::int64_t ttl) {
    return EtcdMisdeed{.change = [=](Message& message) {
      auto* const kept = dynamic_cast<Answer*>(&message);
      if (kept == nullptr) return;
      kept->set_id(kept->id() + id_offset);
      kept->set_ttl(ttl);
    }};
  };
  const auto is_kept = [&](const EtcdMisdeed& misdeed) {
    const HostileEtcd etcd(misdeed, 0);
    const auto env = make_system_env(1);
    Services services;
    const Endpoints endpoints{{"etcd", {etcd.url()}}};
    const StrategyOptions options{.command_timeout = kPatience};
    const auto lock = make_carried(
        *GetParam(),
        {.endpoints = endpoints, .options = options, .env = *env, .services = services});
    const AcquireResult held = lock->acquire({.key = "lockbench:hostile:{k}", .ttl = kTtl});
    if (!held.lease) return false;
    const TimePoint end = held.lease->state->valid_until();
    const auto is_prolonged = [&] { return held.lease->state->valid_until() > end; };
    (void)eventually([&] { return is_prolonged() || env->now() > end; });
    return is_prolonged();
  };
  const std::array answers{answer(0, kTtl.count()), answer(1, kTtl.count()), answer(0, 0),
                           answer(0, -1)};
  std::array<bool, 4> kept{};
  side_by_side(kept.size(), kept.size(),
               [&](std::size_t index) { kept.at(index) = is_kept(answers.at(index)); });
  EXPECT_EQ(kept, (std::array{true, false, false, false}));
}

INSTANTIATE_TEST_SUITE_P(All, HostileEtcdTest, testing::ValuesIn(strategies_of("etcd")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
