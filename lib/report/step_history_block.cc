#include "report/step_history_block.h"

#include <cmath>

namespace halfstep::report {

Json step_history_block(const train::StepHistory& history) {
  Json block{{"interval", history.interval}};
  for (const char* column : {"step", "loss", "learning_rate", "loss_scale", "skipped_steps"}) {
    block[column] = Json::array();
  }
  for (const train::StepPoint& point : history.points) {
    block["step"].push_back(point.step);
    block["loss"].push_back(number(point.loss()));
    block["learning_rate"].push_back(number(point.learning_rate));
    block["loss_scale"].push_back(number(point.loss_scale));
    block["skipped_steps"].push_back(point.skipped);
  }
  return block;
}

train::StepHistory read_step_history(const Json& report) {
  if (!report.contains("step_history")) return {};
  const Json& block = report.at("step_history");
  train::StepHistory history{block.at("interval"), {}};
  for (std::size_t i = 0; i < block.at("step").size(); ++i) {
    const Json& loss = block.at("loss")[i];
    const Json& rate = block.at("learning_rate")[i];
    const Json& scale = block.at("loss_scale")[i];
    train::StepPoint point;
    point.step = block.at("step")[i];
    point.loss_sum = loss.is_number() ? loss.get<double>() : 0;
    point.losses = loss.is_number() ? 1 : 0;
    point.skipped = block.at("skipped_steps")[i];
    point.learning_rate = rate.is_number() ? rate.get<double>() : std::nan("");
    if (scale.is_number()) point.loss_scale = scale.get<double>();
    history.points.push_back(point);
  }
  return history;
}

}  // namespace halfstep::report
