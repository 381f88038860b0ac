#include "hazards/client_process.h"
#include "hazards/stage.h"

namespace lockbench::hazards {
namespace {

/// For what needs no store.
class LocalStage : public Stage {
 public:
  Endpoints endpoints(std::uint16_t /*port*/) const override { return {}; }
  std::uint16_t port() const override { throw StageFailure("there is no server"); }
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& /*house*/, Ground ground) {
  if (ground == Ground::shared) return std::make_shared<LocalStage>();
  return tl::unexpected(NoStage{"it has no server", true});
}

const StageRegistration registration("local", make_stage);

}  // namespace
}  // namespace lockbench::hazards
