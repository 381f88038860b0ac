#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

/// A strategy's endpoints, at least one, parsed by its store's `parse`. Throws
/// std::invalid_argument for an invalid URL: the user's URLs are checked before.
template <class Parse>
auto endpoints_of(const Context& context, Parse parse) {
  using Endpoint = typename std::invoke_result_t<Parse, const std::string&>::value_type;
  if (context.urls.empty()) throw std::invalid_argument("no endpoint was given");
  std::vector<Endpoint> endpoints;
  endpoints.reserve(context.urls.size());
  for (const std::string& url : context.urls) {
    auto endpoint = parse(url);
    if (!endpoint) throw std::invalid_argument(endpoint.error());
    endpoints.push_back(*std::move(endpoint));
  }
  return endpoints;
}

}  // namespace lockbench
