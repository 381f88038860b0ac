#include <array>
#include <nlohmann/json.hpp>

#include "choose/answer_text.h"

namespace lockbench::choose {
namespace {

using Json = nlohmann::ordered_json;

Json reasons(const std::vector<Reason>& list) {
  Json array = Json::array();
  for (const Reason& reason : list) {
    array.push_back({{"requirement", reason.requirement},
                     {"text", reason.text},
                     {"detail", reason.detail},
                     {"evidence", reason.evidence}});
  }
  return array;
}

template <class T>
Json where_there(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json in_seconds(const std::optional<Duration>& value) {
  return value ? Json(seconds(*value)) : Json();
}

Json requirements(const Requirements& asked) {
  Json survive = Json::array(), slos = Json::array();
  for (const Survival& one : asked.survive) {
    survive.push_back({{"word", one.word}, {"scenarios", one.scenarios}, {"fenced", one.fenced}});
  }
  for (const results::Threshold& slo : asked.slos) slos.push_back(slo.text);
  constexpr std::array kUses{"mutex", "once", "leader"};
  return {{"for", kUses.at(static_cast<std::size_t>(asked.use.value_or(Use::mutex)))},
          {"stores", asked.stores},
          {"waived", asked.waived},
          {"survive", std::move(survive)},
          {"work_time_p50", in_seconds(asked.work_p50)},
          {"work_time_p99", in_seconds(asked.work_p99)},
          {"clients", where_there(asked.clients)},
          {"rate", where_there(asked.rate)},
          {"keys", where_there(asked.keys)},
          {"key_skew", asked.key_skew},
          {"rtt", in_seconds(asked.rtt)},
          {"slo", std::move(slos)},
          {"fencing_resource", where_there(asked.fencing_resource)},
          {"fair", asked.fair},
          {"reentrant", asked.reentrant},
          {"shared", asked.shared}};
}

Json qualifying(const Answer& answer) {
  Json array = Json::array();
  for (const Ranked& one : answer.ranked) {
    const Candidate& candidate = *one.candidate;
    array.push_back({{"strategy", std::string(candidate.strategy->name)},
                     {"value", where_there(one.value)},
                     {"at_least", one.at_least},
                     {"doubtful", one.only_invalid_runs},
                     {"tier", one.tier},
                     {"servers", one.servers},
                     {"commands_per_section", where_there(one.commands)},
                     {"falls_to", one.hazards},
                     {"superseded_by", std::string(candidate.strategy->superseded_by)},
                     {"in_favour", reasons(candidate.in_favour)},
                     {"conditions", reasons(candidate.conditions)}});
  }
  return array;
}

Json ruled_out(const Answer& answer) {
  Json array = Json::array();
  for (const Candidate& candidate : answer.candidates) {
    if (candidate.qualifies()) continue;
    array.push_back({{"strategy", std::string(candidate.strategy->name)},
                     {"against", reasons(candidate.against)}});
  }
  return array;
}

Json settings(const std::vector<Setting>& list) {
  Json array = Json::array();
  for (const Setting& setting : list) {
    array.push_back({{"option", setting.option},
                     {"value", setting.value.empty() ? Json() : Json(setting.value)},
                     {"because", setting.because},
                     {"evidence", setting.evidence}});
  }
  return array;
}

}  // namespace

std::string to_json(const Answer& answer) {
  Json relaxations = Json::array(), takeovers = Json::array(), libraries = Json::array();
  for (const Relaxation& one : answer.relaxations) {
    relaxations.push_back(
        {{"without", one.requirements}, {"strategies", one.strategies}, {"instead", one.instead}});
  }
  for (const Takeover& one : answer.takeovers) {
    takeovers.push_back({{"after", one.after}, {"text", one.text}, {"evidence", one.evidence}});
  }
  for (const auto& [language, name, settings] : libraries_of(answer)) {
    libraries.push_back({{"language", language}, {"name", name}, {"settings", settings}});
  }
  const Json document = {{"requirements", requirements(answer.requirements)},
                         {"ranked_by",
                          {{"figure", answer.ranked_by.figure},
                           {"why", answer.ranked_by.why},
                           {"higher_is_better", answer.ranked_by.higher_is_better},
                           {"measured_in", answer.measured_in},
                           {"differences", answer.differences},
                           {"assumption", answer.assumption},
                           {"left_out", answer.left_out}}},
                         {"qualify", qualifying(answer)},
                         {"settings", settings(answer.settings)},
                         {"check", answer.check},
                         {"libraries", std::move(libraries)},
                         {"guard", answer.guard},
                         {"takeovers", std::move(takeovers)},
                         {"observations", answer.observations},
                         {"ruled_out", ruled_out(answer)},
                         {"relaxations", std::move(relaxations)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockbench::choose
