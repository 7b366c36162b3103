#include <array>

#include "command.h"

namespace halfstep::app {

std::span<const Command* const> command_table() {
  static constexpr std::array k_commands{&k_train,
                                         &k_eval,
                                         &k_predict,
                                         &k_compare,
                                         &k_bench,
                                         &k_tune,
                                         &k_explain,
                                         &k_report,
                                         &k_runs,
                                         &k_config,
                                         &k_model,
                                         &k_data,
                                         &k_verify_resume,
                                         &k_doctor,
                                         &k_completion,
                                         &k_help,
                                         &k_version};
  return k_commands;
}

}  // namespace halfstep::app
