#include "testbed/servers/kinds.h"
#include "tests/conformance/common/test_store.h"

namespace lockbench::test {
namespace {

/// To be written: looks into nats independently of the code under test.
class NatsTestStore : public TestStore {
 public:
  testbed::Server& server() override { return *server_; }
  void clear() override { not_written_yet("clear"); }
  std::vector<std::string> keys() override { return not_written_yet("keys"), std::vector<std::string>(); }
  std::optional<TimePoint> end_of(const std::string& /*key*/) override {
    return not_written_yet("end_of"), std::nullopt;
  }
  void take_away(const std::vector<std::string>& /*keys*/) override { not_written_yet("take_away"); }
  int other_connections() override { return not_written_yet("other_connections"), 0; }

 private:
  static void not_written_yet(const char* what) {
    throw std::runtime_error(std::string("not written yet: ") + what +
                             " in tests/conformance/nats/test_store.cc");
  }

  const std::unique_ptr<testbed::Server> server_ = must(testbed::start_nats(shared_testbed()));
};

const TestedStoreRegistration registration({.name = "nats",
                                            .backends = {"nats"},
                                            .shared = the_one<NatsTestStore>,
                                            .make = another<NatsTestStore>});

}  // namespace
}  // namespace lockbench::test
