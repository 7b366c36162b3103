// Recurrent cells, CTC; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_rnn = R"(
BlockLSTM(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T,
    b: T -> i: T, cs: T, f: T, o: T, ci: T, co: T, h: T) forget_bias: float = 1,
    cell_clip: float = 3, use_peephole: bool = false, T: {half, float}
BlockLSTMGrad(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T,
    i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T,
    cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T,
    b_grad: T) use_peephole: bool, T: {half, float}
BlockLSTMGradV2(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T,
    i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T,
    cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T,
    b_grad: T) use_peephole: bool, T: {half, float}
BlockLSTMV2(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T,
    b: T -> i: T, cs: T, f: T, o: T, ci: T, co: T, h: T) cell_clip: float = 0,
    use_peephole: bool = false, T: {half, float}
CTCBeamSearchDecoder(inputs: T, sequence_length: int32 -> decoded_indices: top_paths*int64,
    decoded_values: top_paths*int64, decoded_shape: top_paths*int64,
    log_probability: T) beam_width: int, top_paths: int, merge_repeated: bool = true,
    T: {float, double} = float
CTCGreedyDecoder(inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64,
    decoded_shape: int64, log_probability: T) merge_repeated: bool = false, blank_index: int = -1,
    T: {float, double} = float
CTCLoss(inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T,
    gradient: T) preprocess_collapse_repeated: bool = false, ctc_merge_repeated: bool = true,
    ignore_longer_outputs_than_inputs: bool = false, T: {float, double} = float
CTCLossV2(inputs: float, labels_indices: int64, labels_values: int32,
    sequence_length: int32 -> loss: float,
    gradient: float) preprocess_collapse_repeated: bool = false, ctc_merge_repeated: bool = true,
    ignore_longer_outputs_than_inputs: bool = false
CudnnRNN!(input: T, input_h: T, input_c: T, params: T -> output: T, output_h: T, output_c: T,
    reserve_space: T) T: floattype, rnn_mode: string = 'lstm', input_mode: string = 'linear_input',
    direction: string = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0,
    is_training: bool = true
CudnnRNNBackprop!(input: T, input_h: T, input_c: T, params: T, output: T, output_h: T, output_c: T,
    output_backprop: T, output_h_backprop: T, output_c_backprop: T,
    reserve_space: T -> input_backprop: T, input_h_backprop: T, input_c_backprop: T,
    params_backprop: T) T: floattype, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0
CudnnRNNBackpropV2!(input: T, input_h: T, input_c: T, params: T, output: T, output_h: T,
    output_c: T, output_backprop: T, output_h_backprop: T, output_c_backprop: T, reserve_space: T,
    host_reserved: int8 -> input_backprop: T, input_h_backprop: T, input_c_backprop: T,
    params_backprop: T) T: floattype, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0
CudnnRNNBackpropV3!(input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32, output: T,
    output_h: T, output_c: T, output_backprop: T, output_h_backprop: T, output_c_backprop: T,
    reserve_space: T, host_reserved: int8 -> input_backprop: T, input_h_backprop: T,
    input_c_backprop: T, params_backprop: T) T: floattype, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0, num_proj: int = 0, time_major: bool = true
CudnnRNNCanonicalToParams(num_layers: int32, num_units: int32, input_size: int32,
    weights: num_params*T, biases: num_params*T -> params: T) T: floattype, num_params: int,
    rnn_mode: string = 'lstm', input_mode: string = 'linear_input',
    direction: string = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0
CudnnRNNCanonicalToParamsV2(num_layers: int32, num_units: int32, input_size: int32,
    weights: num_params_weights*T, biases: num_params_biases*T -> params: T) T: floattype,
    num_params_weights: int, num_params_biases: int, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0, num_proj: int = 0
CudnnRNNParamsSize(num_layers: int32, num_units: int32,
    input_size: int32 -> params_size: S) T: floattype, S: {int32, int64}, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0, num_proj: int = 0
CudnnRNNParamsToCanonical(num_layers: int32, num_units: int32, input_size: int32,
    params: T -> weights: num_params*T, biases: num_params*T) T: floattype, num_params: int,
    rnn_mode: string = 'lstm', input_mode: string = 'linear_input',
    direction: string = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0
CudnnRNNParamsToCanonicalV2(num_layers: int32, num_units: int32, input_size: int32,
    params: T -> weights: num_params_weights*T, biases: num_params_biases*T) T: floattype,
    num_params_weights: int, num_params_biases: int, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0, num_proj: int = 0
CudnnRNNV2!(input: T, input_h: T, input_c: T, params: T -> output: T, output_h: T, output_c: T,
    reserve_space: T, host_reserved: int8) T: floattype, rnn_mode: string = 'lstm',
    input_mode: string = 'linear_input', direction: string = 'unidirectional', dropout: float = 0,
    seed: int = 0, seed2: int = 0, is_training: bool = true
CudnnRNNV3!(input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32 -> output: T,
    output_h: T, output_c: T, reserve_space: T, host_reserved: int8) T: floattype,
    rnn_mode: string = 'lstm', input_mode: string = 'linear_input',
    direction: string = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0,
    num_proj: int = 0, is_training: bool = true, time_major: bool = true
GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T) T: {float}
GRUBlockCellGrad(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T,
    d_h: T -> d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T) T: {float}
LSTMBlockCell(x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T,
    o: T, ci: T, co: T, h: T) forget_bias: float = 1, cell_clip: float = 3,
    use_peephole: bool = false, T: {half, float}
LSTMBlockCellGrad(x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T,
    f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T -> cs_prev_grad: T, dicfo: T, wci_grad: T,
    wcf_grad: T, wco_grad: T) use_peephole: bool, T: {half, float}
)";

}  // namespace halfstep::graph::ops
