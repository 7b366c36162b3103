#include "config/warning_codes.h"

#include <algorithm>
#include <array>

namespace halfstep::config {
namespace {

constexpr std::array k_codes{
    WarningCode{k_idle_rewrite_setting,
                "A setting of the automatic rewrite is given, but nothing is rewritten.",
                "Give precision.rewrite: auto, or leave the setting out."},
    WarningCode{k_half_weights_requested,
                "The policy stores the weights in 16 bits too, where small updates are lost.",
                "Use mixed_float16 or mixed_bfloat16, which keep the weights in float32."},
    WarningCode{
        k_idle_initial_scale,
        "A setting of the loss scale is given that the mode does not use: the initial scale "
        "with none, or a rule by which a dynamic scale changes with none or fixed.",
        "Leave the setting out, or give another precision.loss_scale.mode."},
    WarningCode{k_rounding_scale,
                "The initial loss scale is not a power of two, so scaling rounds the gradients.",
                "Use a power of two, such as 32768."},
    WarningCode{k_idle_variable,
                "A variable of the environment, or a part of its value, is not known and has no "
                "effect. This concerns names that begin with HALFSTEP_, SLURM_CPUS_PER_TASK, and "
                "ops and levels in TensorFlow's variables for the rewrite.",
                "Correct the name or the value, or unset the variable."},
    WarningCode{k_idle_loss_scale,
                "A loss scale is given where nothing computes in float16; other dtypes have the "
                "exponent range of float32.",
                "Leave precision.loss_scale out."},
    WarningCode{k_idle_override,
                "A regular expression in precision.overrides matches no layer.",
                "Correct it; `halfstep model summary` lists the names of the layers."},
    WarningCode{k_replaced_dtype,
                "precision.overrides replaces the dtype that a layer gives itself.",
                "Leave one of the two out."},
    WarningCode{k_loss_gets_scores,
                "The loss takes probabilities, but the model ends in scores without bounds.",
                "Give the last layer a softmax or sigmoid, or the loss from_logits: true if it has "
                "that."},
    WarningCode{k_loss_gets_probabilities,
                "The loss takes scores, and the model ends in a softmax or sigmoid.",
                "Leave out from_logits, or the activation of the last layer."},
    WarningCode{k_other_precision,
                "The config given with a run has another precision than the run.",
                "Leave the config out to use that of the run."},
    WarningCode{k_fallback_used,
                "A device or an arithmetic that was asked for cannot be had here, and "
                "--allow-fallback lets the run continue with another; the report names both.",
                "Use a machine that has it, or ask for what is used."},
    WarningCode{k_many_threads,
                "There are more threads than processors, so that they wait for each other.",
                "Leave device.threads out to use all processors that the process may use."},
    WarningCode{
        k_shuffled_state,
        "A stateful layer continues from the previous batch, but the samples are shuffled, so "
        "that a sample begins with the state of an unrelated one.",
        "Give data.streams: true where the samples are consecutive windows, or "
        "data.shuffle: false where they are in the order that the layer needs."},
    WarningCode{k_samples_skipped,
                "data.streams cuts the training samples into as many streams as a batch has "
                "samples, all of one length, and the samples behind them are in no batch.",
                "Give a training.batch_size that divides the number of training samples, or expect "
                "to train without the last ones of the file."},
    WarningCode{k_idle_state_setting,
                "data.streams or training.reset_states is given, but no layer is stateful.",
                "Give a recurrent layer stateful: true, or leave the setting out."},
    WarningCode{k_untrained_weights,
                "A layer has weights that no gradient of the loss reaches.",
                "Connect the layer with an output, or give it trainable: false."},
    WarningCode{
        k_infinite_input,
        "Samples have values of 65520 or more, which are infinite in float16, and the model takes "
        "its input in float16: their steps are skipped, or their results are not finite.",
        "Standardise the values or give a smaller data.scale; or use float32, or bfloat16, which "
        "has its range."},
    WarningCode{k_equal_labels,
                "All training samples have the same label, so that any model learns to answer with "
                "it.",
                "Check that data.path is the folder that contains one folder for each class, or "
                "that the column or array of the labels is the right one."},
    WarningCode{
        k_shared_gpu,
        "Another process of halfstep uses the same GPU: the two divide its memory and time.",
        "Give each process a GPU of its own by CUDA_VISIBLE_DEVICES or `--device cuda:N`, or "
        "let them run one after the other; do not compare their step times."},
    WarningCode{k_unread_input,
                "No output of the model depends on the values of an input.",
                "Connect it. position_embedding takes only the shape of its input: in model.nodes, "
                "`add` gives the sum of both."},
    WarningCode{k_masked_tokens,
                "An embedding has mask_zero over windows of a text, which have no padding: token 0 "
                "is <unknown>, so that loss and layers leave out the unknown tokens.",
                "Leave out mask_zero, which is for the texts of a csv."},
    WarningCode{k_half_output,
                "The output of the model has 16 bits, so that probabilities lose digits.",
                "Give the last layer dtype: float32."},
    WarningCode{k_half_weights,
                "A layer stores its weights in 16 bits: small updates are lost, and there is no "
                "float32 copy.",
                "Give it a mixed policy."},
    WarningCode{k_padded_extent,
                "An extent is not a multiple of the matrix unit's block and is padded.",
                "Round units, filters or the batch size up, where the padding adds more than some "
                "per cent."},
    WarningCode{k_little_work,
                "A step has too little work for 16 bits to save time.",
                "Expect to save memory only; larger layers or batches change that."},
    WarningCode{k_denied_op,
                "An op on the deny list keeps the ops behind it in float32.",
                "Try the edits of the lists that the hint names, and compare the accuracy."},
    WarningCode{k_no_matrix_unit,
                "The processor multiplies no numbers of this dtype: 16 bits save memory, not time.",
                "Use the other 16-bit dtype, or another machine; `halfstep doctor` shows what this "
                "one has."},
    WarningCode{k_many_casts,
                "Casts between dtypes read and write much in comparison with all ops.",
                "Give neighbouring layers the same dtype."},
    WarningCode{k_lost_epsilon,
                "A constant, mostly an epsilon, is nearly or exactly 0 in float16.",
                "Give a larger epsilon, or the layer dtype: float32."},
    WarningCode{k_unsuitable_gpu,
                "TensorFlow does not rewrite graphs for this GPU, which has no tensor cores.",
                "Take what explain shows for what the rewrite would do."},
    WarningCode{k_idle_rewrite,
                "The rewrite converted nothing.",
                "Check the device that is rewritten for, and the lists."},
    WarningCode{k_half_unscaling,
                "The loss scale is taken off the gradients in float16, where gradients are lost "
                "that the scale had saved.",
                "Give precision.rewrite_rules: 2.19, or a mixed policy, which unscale in float32."},
    WarningCode{k_few_steps_timed,
                "The step time is based on few steps.",
                "Train for more steps, or measure with `halfstep bench`."},
    WarningCode{
        k_other_machine,
        "A resumed run continues on another device, instruction set or number of threads, so "
        "that its bits differ from those of a run that was never stopped.",
        "Resume on a machine of the same kind where the bits matter."},
    WarningCode{k_random_samples,
                "The data of a benchmark are not here, so that it measures on random samples of "
                "the model's shapes.",
                "Give the data, or `bench --synthetic` where random samples are meant."},
    WarningCode{
        k_idle_end,
        "The updates of all steps were skipped from some step to the end of training: for a whole "
        "epoch, or for many steps although the loss scale was at its minimum.",
        "Lower the learning rate or precision.loss_scale.min, or keep the layer that overflows in "
        "float32; precision.loss_scale.max_consecutive_skips ends such a run."},
    WarningCode{
        k_loss_without_value,
        "The loss of the last epoch is not finite, though gradients were: the loss has no value at "
        "some outputs or labels, as the logarithm of a number below 0 has none, or the outputs "
        "grew beyond float32.",
        "Give the last layer an activation whose outputs the loss allows, as exponential or "
        "softplus for poisson; see that the labels are those that it is for; or lower the learning "
        "rate."},
    WarningCode{k_nonfinite_results,
                "Outputs of the model, or metrics of an evaluation, are NaN or infinite.",
                "See whether training diverged: `halfstep report show` says how it ended. Take an "
                "earlier checkpoint by --checkpoint, or train with a lower learning rate."},
};

}  // namespace

std::span<const WarningCode> warning_codes() { return k_codes; }

const WarningCode& warning_code(std::string_view code) {
  const auto found = std::ranges::find(k_codes, code, &WarningCode::code);
  require(found != k_codes.end(), "no warning {}", code);
  return *found;
}

}  // namespace halfstep::config
