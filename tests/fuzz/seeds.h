#pragma once
// Valid inputs of each target, a few hundred bytes each except for complete reports.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace halfstep::fuzz {

std::vector<std::string> config_seeds();
std::vector<std::string> graph_seeds();
std::vector<std::string> csv_seeds();
std::vector<std::string> idx_seeds();
std::vector<std::string> idx_gz_seeds();
std::vector<std::string> bmp_seeds();
std::vector<std::string> jpeg_seeds();
std::vector<std::string> npy_seeds();
std::vector<std::string> text_seeds();
std::vector<std::string> npz_seeds();
std::vector<std::string> png_seeds();
std::vector<std::string> png_content_seeds();
std::vector<std::string> safetensors_seeds();
std::vector<std::string> safetensors_header_seeds();
std::vector<std::string> report_seeds();
std::vector<std::string> state_seeds();

/// A PNG whose first 13 bytes of `content` are its header and the rest its rows, uncompressed; too
/// short a header is filled up with zeros.
std::vector<std::byte> png_of(std::span<const std::byte> content);

/// A safetensors file with this header and bytes for the tensors of safetensors_header_seeds().
std::vector<std::byte> safetensors_of(std::span<const std::byte> header);

}  // namespace halfstep::fuzz
