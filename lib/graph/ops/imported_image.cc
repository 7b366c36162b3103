// Convolution, normalisation, pooling and images; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_image = R"(
AdjustContrastv2(images: T, contrast_factor: float -> output: T) T: {half, float} = float
AdjustHue(images: T, delta: float -> output: T) T: {half, float} = float
AdjustSaturation(images: T, scale: float -> output: T) T: {half, float} = float
AvgPool3D(input: T -> output: T) ksize: list(int), strides: list(int), padding: string,
    data_format: string = 'NDHWC', T: floattype
AvgPool3DGrad(orig_input_shape: int32, grad: T -> output: T) ksize: list(int), strides: list(int),
    padding: string, data_format: string = 'NDHWC', T: floattype
BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T,
    gamma: T -> result: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    variance_epsilon: float, scale_after_normalization: bool
BatchNormWithGlobalNormalizationGrad(t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T,
    db: T,
    dg: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    variance_epsilon: float, scale_after_normalization: bool
BatchToSpace(input: T, crops: Tidx -> output: T) T: type, block_size: int,
    Tidx: {int32, int64} = int32
BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T) T: type,
    Tblock_shape: {int32, int64} = int32, Tcrops: {int32, int64} = int32
BiasAddV1(value: T,
    bias: T -> output: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32}
CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32,
    max_total_size: int32, iou_threshold: float, score_threshold: float -> nmsed_boxes: float,
    nmsed_scores: float, nmsed_classes: float, valid_detections: int32) pad_per_class: bool = false,
    clip_boxes: bool = true
Conv3D(input: T, filter: T -> output: T) T: floattype, strides: list(int), padding: string,
    data_format: string = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]
Conv3DBackpropFilter(input: T, filter: T, out_backprop: T -> output: T) T: {half, float, double},
    strides: list(int), padding: string, dilations: list(int) = [1, 1, 1, 1, 1]
Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T -> output: T) T: floattype,
    strides: list(int), padding: string, data_format: string = 'NDHWC', dilations: list(int) = [1,
    1, 1, 1, 1]
Conv3DBackpropInput(input: T, filter: T, out_backprop: T -> output: T) T: {half, float, double},
    strides: list(int), padding: string, dilations: list(int) = [1, 1, 1, 1, 1]
Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T -> output: T) T: floattype,
    strides: list(int), padding: string, data_format: string = 'NDHWC', dilations: list(int) = [1,
    1, 1, 1, 1], Tshape: {int32, int64} = int32
CropAndResize(image: T, boxes: float, box_ind: int32,
    crop_size: int32 -> crops: float) T: {half, float, double, int8, int16, int32, int64, uint8,
        uint16},
    method: string = 'bilinear', extrapolation_value: float = 0
CropAndResizeGradBoxes(grads: float, image: T, boxes: float,
    box_ind: int32 -> output: float) T: {half, float, double, int8, int16, int32, int64, uint8,
        uint16},
    method: string = 'bilinear'
CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32,
    image_size: int32 -> output: T) T: {half, float, double}, method: string = 'bilinear'
DepthToSpace(input: T -> output: T) T: type, block_size: int, data_format: string = 'NHWC'
Dilation2D(input: T, filter: T -> output: T) T: realnumbertype, strides: list(int),
    rates: list(int), padding: string
Dilation2DBackpropFilter(input: T, filter: T,
    out_backprop: T -> filter_backprop: T) T: realnumbertype, strides: list(int), rates: list(int),
    padding: string
Dilation2DBackpropInput(input: T, filter: T, out_backprop: T -> in_backprop: T) T: realnumbertype,
    strides: list(int), rates: list(int), padding: string
ExtractImagePatches(images: T -> patches: T) ksizes: list(int), strides: list(int),
    rates: list(int),
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        bool, complex64, complex128},
    padding: string
ExtractVolumePatches(input: T -> patches: T) ksizes: list(int), strides: list(int),
    T: realnumbertype, padding: string
FractionalAvgPool(value: T -> output: T, row_pooling_sequence: int64,
    col_pooling_sequence: int64) pooling_ratio: list(float), pseudo_random: bool = false,
    overlapping: bool = false, deterministic: bool = false, seed: int = 0, seed2: int = 0,
    T: {float, double, int32, int64}
FractionalAvgPoolGrad(orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64,
    col_pooling_sequence: int64 -> output: T) overlapping: bool = false,
    T: {float, double, int32, int64}
FractionalMaxPool(value: T -> output: T, row_pooling_sequence: int64,
    col_pooling_sequence: int64) pooling_ratio: list(float), pseudo_random: bool = false,
    overlapping: bool = false, deterministic: bool = false, seed: int = 0, seed2: int = 0,
    T: {float, double, int32, int64}
FractionalMaxPoolGrad(orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64,
    col_pooling_sequence: int64 -> output: T) overlapping: bool = false,
    T: {float, double, int32, int64}
FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T,
    batch_variance: T, reserve_space_1: T, reserve_space_2: T) T: {float}, epsilon: float = 0.0001,
    exponential_avg_factor: float = 1, data_format: string = 'NHWC', is_training: bool = true
FusedBatchNormGrad(y_backprop: T, x: T, scale: T, reserve_space_1: T,
    reserve_space_2: T -> x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T,
    reserve_space_4: T) T: {float}, epsilon: float = 0.0001, data_format: string = 'NHWC',
    is_training: bool = true
_FusedBatchNormGradEx(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U,
    reserve_space_3: U, offset: float, y: T -> x_backprop: T, scale_backprop: U, offset_backprop: U,
    reserve_space_4: U, reserve_space_5: U,
    side_input_backprop: num_side_inputs*T) T: {half, float}, U: {float}, epsilon: float = 0.0001,
    num_side_inputs: int = 0, activation_mode: string = 'Identity', data_format: string = 'NHWC',
    is_training: bool = true
FusedBatchNormGradV2(y_backprop: T, x: T, scale: float, reserve_space_1: U,
    reserve_space_2: U -> x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U,
    reserve_space_4: U) T: halffloat, U: {float}, epsilon: float = 0.0001,
    data_format: string = 'NHWC', is_training: bool = true
FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U,
    batch_variance: U, reserve_space_1: U, reserve_space_2: U) T: halffloat, U: {float},
    epsilon: float = 0.0001, exponential_avg_factor: float = 1, data_format: string = 'NHWC',
    is_training: bool = true
_FusedConv2D(input: T, filter: T, args: TArgs,
    host_args: num_host_args*float -> output: T) T: {half, float, double, int8, qint8},
    TArgs: list(type), num_args: int, num_host_args: int = 0, strides: list(int), padding: string,
    explicit_paddings: list(int) = [], data_format: string = 'NHWC', filter_format: string = 'HWIO',
    dilations: list(int) = [1, 1, 1, 1], use_cudnn_on_gpu: bool = true, fused_ops: string = '',
    epsilon: float = 0.0001, leakyrelu_alpha: float = 0.2
FusedConv2DBiasActivation(conv_input: T, filter: T, bias: Tbias, side_input: T,
    conv_input_scale: float, side_input_scale: float -> output: T) T: {half, float, qint8},
    Tbias: {half, float}, data_format: string = 'NHWC', filter_format: string = 'HWIO',
    padding: string, strides: list(int), dilations: list(int) = [1, 1, 1, 1],
    activation_mode: string = 'Relu'
_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args*T -> output: T) T: floattype,
    num_args: int, strides: list(int), padding: string, data_format: string = 'NHWC',
    dilations: list(int) = [1, 1, 1, 1], fused_ops: string = '', epsilon: float = 0.0001,
    leakyrelu_alpha: float = 0.2
_FusedMatMul(a: T, b: T, args: num_args*T -> product: T) transpose_a: bool = false,
    transpose_b: bool = false, T: halffloat, num_args: int, fused_ops: string = '',
    epsilon: float = 0.0001, leakyrelu_alpha: float = 0.2
FusedPadConv2D(input: T, paddings: int32, filter: T -> output: T) T: floattype, mode: string,
    strides: list(int), padding: string
FusedResizeAndPadConv2D(input: T, size: int32, paddings: int32,
    filter: T -> output: T) T: {half, float, double}, resize_align_corners: bool = false,
    mode: string, strides: list(int), padding: string
HSVToRGB(images: T -> output: T) T: floattype = float
ImageProjectiveTransformV2(images: dtype, transforms: float,
    output_shape: int32 -> transformed_images: dtype) dtype: {half, bfloat16, float, double, int32,
        int64, uint8},
    interpolation: string, fill_mode: string = 'CONSTANT'
ImageProjectiveTransformV3(images: dtype, transforms: float, output_shape: int32,
    fill_value: float -> transformed_images: dtype) dtype: {half, bfloat16, float, double, int32,
        int64, uint8},
    interpolation: string, fill_mode: string = 'CONSTANT'
LRN(input: T -> output: T) depth_radius: int = 5, bias: float = 1, alpha: float = 1,
    beta: float = 0.5, T: halffloat = float
LRNGrad(input_grads: T, input_image: T, output_image: T -> output: T) depth_radius: int = 5,
    bias: float = 1, alpha: float = 1, beta: float = 0.5, T: halffloat = float
MaxPool3D(input: T -> output: T) ksize: list(int), strides: list(int), padding: string,
    data_format: string = 'NDHWC', T: halffloat
MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T -> output: T) ksize: list(int),
    strides: list(int), padding: string, data_format: string = 'NDHWC', T: halffloat = float,
    TInput: halffloat = float
MaxPool3DGradGrad(orig_input: T, orig_output: T, grad: T -> output: T) ksize: list(int),
    strides: list(int), padding: string, data_format: string = 'NDHWC', T: realnumbertype
MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T -> output: T) ksize: list(int),
    strides: list(int), padding: string, data_format: string = 'NHWC', T: realnumbertype
MaxPoolGradGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32,
    strides: int32 -> output: T) padding: string, data_format: string = 'NHWC', T: realnumbertype
MaxPoolGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32,
    strides: int32 -> output: T) padding: string, data_format: string = 'NHWC',
    T: realnumbertype = float
MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax -> output: T) ksize: list(int),
    strides: list(int), padding: string, include_batch_in_index: bool = false,
    Targmax: {int32, int64}, T: realnumbertype
MaxPoolV2(input: T, ksize: int32,
    strides: int32 -> output: T) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, qint8} = float,
    padding: string, data_format: string = 'NHWC'
MaxPoolWithArgmax(input: T -> output: T, argmax: Targmax) ksize: list(int), strides: list(int),
    Targmax: {int32, int64} = int64, padding: string, include_batch_in_index: bool = false,
    T: realnumbertype
NonMaxSuppression(boxes: float, scores: float,
    max_output_size: int32 -> selected_indices: int32) iou_threshold: float = 0.5
NonMaxSuppressionV2(boxes: T, scores: T, max_output_size: int32,
    iou_threshold: T_threshold -> selected_indices: int32) T: {half, float} = float,
    T_threshold: {half, float} = float
NonMaxSuppressionV3(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
    score_threshold: T_threshold -> selected_indices: int32) T: {half, float} = float,
    T_threshold: {half, float} = float
NonMaxSuppressionV4(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
    score_threshold: T_threshold -> selected_indices: int32,
    valid_outputs: int32) T: {half, float} = float, T_threshold: {half, float} = float,
    pad_to_max_output_size: bool = false
NonMaxSuppressionV5(boxes: T, scores: T, max_output_size: int32, iou_threshold: T,
    score_threshold: T, soft_nms_sigma: T -> selected_indices: int32, selected_scores: T,
    valid_outputs: int32) T: {half, float} = float, pad_to_max_output_size: bool = false
RGBToHSV(images: T -> output: T) T: floattype = float
ResizeArea(images: T,
    size: int32 -> resized_images: float) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16},
    align_corners: bool = false
ResizeBicubic(images: T,
    size: int32 -> resized_images: float) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16},
    align_corners: bool = false, half_pixel_centers: bool = false
ResizeBicubicGrad(grads: float, original_image: T -> output: T) T: {float, double},
    align_corners: bool = false, half_pixel_centers: bool = false
ResizeBilinear(images: T,
    size: int32 -> resized_images: float) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16},
    align_corners: bool = false, half_pixel_centers: bool = false
ResizeBilinearGrad(grads: float, original_image: T -> output: T) T: floattype,
    align_corners: bool = false, half_pixel_centers: bool = false
ResizeNearestNeighbor(images: T,
    size: int32 -> resized_images: T) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16},
    align_corners: bool = false, half_pixel_centers: bool = false
ResizeNearestNeighborGrad(grads: T,
    size: int32 -> output: T) T: {half, bfloat16, float, double, int8, int32, uint8},
    align_corners: bool = false, half_pixel_centers: bool = false
SampleDistortedBoundingBoxV2!(image_size: T, bounding_boxes: float,
    min_object_covered: float -> begin: T, size: T,
    bboxes: float) T: {int8, int16, int32, int64, uint8}, seed: int = 0, seed2: int = 0,
    aspect_ratio_range: list(float) = [0.75, 1.33], area_range: list(float) = [0.05, 1],
    max_attempts: int = 100, use_image_if_no_bounding_boxes: bool = false
ScaleAndTranslate(images: T, size: int32, scale: float,
    translation: float -> resized_images: float) T: {half, bfloat16, float, double, int8, int16,
        int32, int64, uint8, uint16},
    kernel_type: string = 'lanczos3', antialias: bool = true
ScaleAndTranslateGrad(grads: T, original_image: T, scale: float,
    translation: float -> output: T) T: {float}, kernel_type: string = 'lanczos3',
    antialias: bool = true
SpaceToBatch(input: T, paddings: Tpaddings -> output: T) T: type, Tpaddings: {int32, int64} = int32,
    block_size: int
SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T) T: type,
    Tblock_shape: {int32, int64} = int32, Tpaddings: {int32, int64} = int32
SpaceToDepth(input: T -> output: T) T: type, block_size: int, data_format: string = 'NHWC'
)";

}  // namespace halfstep::graph::ops
