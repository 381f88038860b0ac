#pragma once

#include "testbed/failure.h"

namespace lockbench::deployment {

using testbed::attempt;
using testbed::Failure;
using testbed::need;

}  // namespace lockbench::deployment
