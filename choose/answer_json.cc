#include <nlohmann/json.hpp>

#include "choose/answer.h"

namespace lockbench::choose {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json where_there(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json record_json(const std::map<std::string, results::OptionValue>& options) {
  Json json = Json::object();
  for (const auto& option : options) {
    std::visit([&](const auto& plain) { json[option.first] = plain; }, option.second);
  }
  return json;
}

Json simulated_json(const Candidate& one) {
  if (!one.simulated) return {};
  return {{"value", one.simulated->value}, {"at_least", one.simulated->at_least}};
}

}  // namespace

// nlohmann/json finds these functions by their name.

static void to_json(Json& json, const Reason& one) {
  json = {{"requirement", one.requirement},
          {"text", one.text},
          {"detail", one.detail},
          {"evidence", one.evidence},
          {"kept", where_there(one.kept)}};
}

static void to_json(Json& json, const Code& one) {
  json = {{"language", one.language}, {"text", one.text}};
}

static void to_json(Json& json, const Setting& one) {
  json = {{"option", one.option},
          {"value", one.value.empty() ? Json() : Json(one.value)},
          {"because", one.because},
          {"evidence", one.evidence}};
}

static void to_json(Json& json, const Takeover& one) {
  json = {{"after", one.after}, {"text", one.text}, {"evidence", one.evidence}};
}

static void to_json(Json& json, const Relaxation& one) {
  json = {{"without", one.requirements}, {"strategies", one.strategies}, {"instead", one.instead}};
}

std::string to_json(const Answer& answer,
                    const std::map<std::string, results::OptionValue>& requirements) {
  Json qualify = Json::array(), ruled_out = Json::array(), libraries = Json::array();
  for (const Candidate& one : answer.ranked) {
    qualify.push_back({{"strategy", one.strategy->name},
                       {"value", where_there(one.value)},
                       {"at_least", one.at_least},
                       {"doubtful", one.only_invalid_runs},
                       {"simulated", simulated_json(one)},
                       {"tier", one.tier},
                       {"servers", one.servers},
                       {"commands_per_section", where_there(one.commands)},
                       {"falls_to", one.hazards},
                       {"superseded_by", one.strategy->superseded_by},
                       {"drawback", one.drawback},
                       {"in_favour", one.in_favour},
                       {"conditions", one.conditions},
                       {"needs", one.needs},
                       {"not_survived", one.not_survived}});
  }
  for (const Candidate& one : answer.ruled_out) {
    ruled_out.push_back({{"strategy", one.strategy->name},
                         {"against", one.against},
                         {"not_survived", one.not_survived}});
  }
  const auto settings = answer.ranked.empty() ? std::vector<Setting>{} : answer.ranked[0].settings;
  if (!answer.ranked.empty()) {
    for (const Library& one : libraries_for(*answer.ranked[0].strategy, answer.requirements)) {
      libraries.push_back({{"language", one.language},
                           {"name", one.name},
                           {"settings", setup_of(one, answer)},
                           {"similar", one.similar}});
    }
  }
  const Json document = {
      {"requirements", record_json(requirements)},
      {"too_busy", answer.too_busy},
      {"ranked_by",
       {{"figure", answer.ranked_by.figure},
        {"why", answer.ranked_by.why},
        {"higher_is_better", answer.ranked_by.higher_is_better},
        {"measured_in", answer.measured_in},
        {"differences", answer.differences},
        {"assumption", answer.assumption},
        {"left_out", answer.left_out}}},
      {"qualify", std::move(qualify)},
      {"settings", settings},
      {"check", answer.check},
      {"not_decided", answer.not_decided},
      {"libraries", std::move(libraries)},
      {"code", answer.code},
      {"recipe", !answer.ranked.empty() && is_recipe(*answer.ranked[0].strategy)},
      {"guard", answer.guard},
      {"takeovers", answer.takeovers},
      {"ruled_out", std::move(ruled_out)},
      {"relaxations", answer.relaxations}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockbench::choose
