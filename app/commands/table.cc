#include <array>

#include "command.h"

namespace halfstep::app {

extern const Command k_bench;
extern const Command k_compare;
extern const Command k_completion;
extern const Command k_config;
extern const Command k_data;
extern const Command k_doctor;
extern const Command k_eval;
extern const Command k_explain;
extern const Command k_help;
extern const Command k_model;
extern const Command k_predict;
extern const Command k_report;
extern const Command k_runs;
extern const Command k_train;
extern const Command k_tune;
extern const Command k_verify_resume;
extern const Command k_version;

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
