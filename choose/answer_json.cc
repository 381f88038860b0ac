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
  return {{"stores", asked.stores},
          {"survive", std::move(survive)},
          {"work_time_p50", in_seconds(asked.work_p50)},
          {"work_time_p99", in_seconds(asked.work_p99)},
          {"clients", where_there(asked.clients)},
          {"rate", where_there(asked.rate)},
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
    array.push_back(
        {{"strategy", std::string(candidate.strategy->name)},
         {"value", where_there(one.value)},
         {"doubtful", one.doubtful},
         {"better", one.better == nullptr ? Json() : Json(std::string(one.better->strategy->name))},
         {"falls_to", one.falls_to},
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
  Json concessions = Json::array();
  for (const Concession& one : answer.concessions) {
    concessions.push_back({{"without", one.requirement}, {"strategies", one.strategies}});
  }
  const Json document = {{"requirements", requirements(answer.requirements)},
                         {"ranked_by",
                          {{"figure", answer.yardstick.figure},
                           {"why", answer.yardstick.why},
                           {"higher_is_better", answer.yardstick.higher_is_better},
                           {"measured_in", answer.measured_in},
                           {"left_out", answer.left_out}}},
                         {"qualify", qualifying(answer)},
                         {"settings", settings(answer.settings)},
                         {"check", answer.check},
                         {"observations", answer.observations},
                         {"ruled_out", ruled_out(answer)},
                         {"concessions", std::move(concessions)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockbench::choose
