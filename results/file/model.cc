#include "results/file/model.h"

namespace lockbench::results {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::exclusive:
      return "exclusive";
    case Verdict::violated:
      return "violated";
    case Verdict::unprotected:
      return "unprotected";
    case Verdict::unaudited:
      return "unaudited";
  }
  return "unknown";
}

}  // namespace lockbench::results
