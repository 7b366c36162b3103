#include "seeds.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/tensor.h"
#include "data/deflate.h"
#include "data/jpeg_file.h"
#include "data/tensor_files.h"
#include "precision/graph_report.h"
#include "report/train_report.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "train/fixture.h"
#include "train/progress.h"

namespace halfstep::fuzz {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Tensor counting(DType dtype, const Shape& shape) {
  Tensor numbers(DType::int32, shape);
  for (std::int64_t i = 0; i < numbers.elements(); ++i) {
    numbers.as<std::int32_t>()[i] = static_cast<std::int32_t>(i % 2);
  }
  Tensor tensor(dtype, shape);
  convert(numbers.view(), tensor.view());
  return tensor;
}

/// The contents that `write` writes to a file.
template <class Write>
std::string written(Write write) {
  const test::TemporaryDirectory directory;
  write(directory.file("f"));
  return contents(directory.file("f"));
}

Bytes big_endian(std::size_t value) {
  const auto n = static_cast<std::uint32_t>(value);
  Bytes bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes.push_back(static_cast<std::byte>(n >> shift & 0xFFU));
  }
  return bytes;
}

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_chunk(Bytes& png, std::string_view type, std::span<const std::byte> content) {
  Bytes body = bytes_of(type);
  append(body, content);
  append(png, big_endian(content.size()));
  append(png, body);
  append(png, big_endian(data::crc_of(body)));
}

std::string safetensors_file() {
  const Tensor a = counting(DType::float32, {2, 3}), b = counting(DType::boolean, {4});
  return written([&](const std::string& path) {
    data::write_safetensors(
        path,
        std::array{data::NamedTensor{"a", a.view()}, data::NamedTensor{"b", b.view()}},
        {{"format", "halfstep"}});
  });
}

std::size_t safetensors_header_bytes(std::string_view file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return length;
}

}  // namespace

std::vector<std::string> config_seeds() {
  std::vector<std::string> seeds;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "tests/config/good")) {
    if (entry.path().extension() == ".yaml") seeds.push_back(contents(entry.path()));
  }
  return seeds;
}

std::vector<std::string> graph_seeds() {
  return {
      "x = Const {value: [1, 2.5], shape: [2]} @CPU\nw = Const\na = MatMul(x, w, ^x)\n"
      "b = BiasAdd(a, w)\ni = IdentityN(a, b) {T: [float32, float32]}\nf = Identity(i:1)\n"
      "preserve f, a\nno_kernel Tanh float16\nfunction Own\nt = Tanh(b)\nown = Own(t)\n",
      "e = Enter(x) {frame_name: \"f\"}\nm = Merge(e, n)\nx = Const\na = MatMul(m, m)\n"
      "n = NextIteration(a)\nz = Exit(m)\nl = TensorListReserve(s, s) {element_dtype: float32}\n"
      "s = Const {dtype: int32}\nset = TensorListSetItem(l, s, a)\n"
      "get = TensorListGetItem(set, s, s)\nc = Cast(get) {DstT: int64}\n",
      "variable k {dtype: float32, shape: [4, 2], role: weight}\n"
      "h = Placeholder {dtype: resource}\nr = ReadVariableOp(h)\none = Const {value: 1.0}\n"
      "v = RealDiv(one, r)\ny = Mul(r, r)\nq = MatMul(y, y)\nu = Mul(q, v)\n",
  };
}

std::vector<std::string> csv_seeds() {
  return {"size,colour,y\n1,red,no\n2.5,\"blue, dark\",yes\n3,red,yes\n",
          "a;y\r\n1;0.25\r\n;1e3\r\n-4;2\r\n",
          "\xEF\xBB\xBFname\ty\n\"two\nlines\"\t1\n\"a \"\"b\"\"\"\t2\n"};
}

std::vector<std::string> text_seeds() {
  return {"The cat sat on the mat. The dog's bone was 12 cm long!\n\nThe cat purred; it slept.\n",
          "\xEF\xBB\xBF"
          "Caf\xC3\xA9 au lait \xE2\x82\xAC 3,50\r\n\t\xF0\x9F\x90\x88 noir \xE2\x82\xAC 2\r\n"};
}

std::vector<std::string> idx_seeds() {
  std::vector<std::string> seeds;
  for (const DType dtype : {DType::uint8, DType::int32, DType::float32}) {
    seeds.push_back(written([&](const std::string& path) {
      data::write_idx(path, counting(dtype, {4, 3, 2}).view());
    }));
  }
  return seeds;
}

std::vector<std::string> idx_gz_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& plain : idx_seeds()) {
    seeds.push_back(text_of(data::deflate(bytes_of(plain), data::Wrapper::gzip)));
  }
  return seeds;
}

std::vector<std::string> bmp_seeds() {
  using namespace std::string_literals;
  const std::string info = "BM\0\0\0\0\0\0\0\0"s;
  const std::string rest = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s;
  const auto file = [&](int offset, int bits, int compression, const std::string& behind) {
    std::string seed = info + static_cast<char>(offset) + "\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0"s;
    seed += static_cast<char>(bits);
    seed += '\0';
    seed += static_cast<char>(compression);
    return seed + "\0\0\0"s + rest + behind;
  };
  return {
      file(54, 24, 0, "\1\2\3\4\5\6\0\0"s),
      file(62, 1, 0, "\0\0\0\0\xff\xff\xff\0\x40\0\0\0"s),
      file(66, 32, 3, "\xff\0\0\0\0\xff\0\0\0\0\xff\0\1\2\3\4\5\6\7\x08"s),
  };
}

std::vector<std::string> jpeg_seeds() {
  using data::testing::JpegOptions;
  // No multiple of a block in either direction.
  constexpr int k_height = 11, k_width = 21;
  const auto pixels = [](int channels) {
    std::vector<std::uint8_t> values;
    for (int i = 0; i < k_height * k_width * channels; ++i) {
      values.push_back(static_cast<std::uint8_t>(i * 7));
    }
    return values;
  };
  std::vector<std::string> seeds;
  const auto add = [&](int channels, const JpegOptions& options) {
    seeds.push_back(text_of(data::testing::jpeg(k_height, k_width, pixels(channels), options)));
  };
  add(1, {.colours = JCS_GRAYSCALE, .quality = 50});
  add(1, {.colours = JCS_GRAYSCALE, .quality = 50, .restart_interval = 1});
  add(3, {.quality = 50});
  add(3, {.quality = 50, .progressive = true});
  return seeds;
}

std::vector<std::string> npy_seeds() {
  std::vector<std::string> seeds;
  for (const DType dtype : {DType::float32, DType::float16, DType::uint8, DType::int64}) {
    const Tensor numbers = counting(dtype, {3, 2});
    seeds.push_back(text_of(data::npy_header(dtype, numbers.shape())) +
                    std::string(numbers.as<const char>(), numbers.bytes()));
  }
  return seeds;
}

std::vector<std::string> npz_seeds() {
  const Tensor x = counting(DType::float32, {3, 2}), y = counting(DType::int32, {3});
  return {written([&](const std::string& path) {
    data::write_npz(path,
                    std::array{data::NamedTensor{"x", x.view()}, data::NamedTensor{"y", y.view()}});
  })};
}

std::vector<std::byte> png_of(std::span<const std::byte> content) {
  constexpr std::size_t k_header = 13;
  Bytes header(content.begin(),
               content.begin() + static_cast<std::ptrdiff_t>(std::min(k_header, content.size())));
  header.resize(k_header);
  const auto rows = content.subspan(std::min(k_header, content.size()));
  Bytes png = bytes_of("\x89PNG\r\n\x1a\n");
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", data::deflate(rows, data::Wrapper::zlib));
  append_chunk(png, "IEND", {});
  return png;
}

std::vector<std::string> png_content_seeds() {
  using namespace std::string_literals;
  return {
      "\0\0\0\3\0\0\0\2\x08\0\0\0\0"s + "\0\1\2\3\1\4\5\6"s,              // grey, 8 bits
      "\0\0\0\2\0\0\0\2\x08\2\0\0\0"s + "\2\1\2\3\4\5\6\4\1\2\3\4\5\6"s,  // RGB
      "\0\0\0\x0b\0\0\0\2\1\0\0\0\0"s + "\0\xaa\x50\3\x0f\xf0"s,          // grey, 1 bit
  };
}

std::vector<std::string> png_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& content : png_content_seeds()) {
    seeds.push_back(text_of(png_of(bytes_of(content))));
  }
  return seeds;
}

std::vector<std::string> safetensors_seeds() { return {safetensors_file()}; }

std::vector<std::string> safetensors_header_seeds() {
  const std::string file = safetensors_file();
  return {file.substr(sizeof(std::uint64_t), safetensors_header_bytes(file))};
}

std::vector<std::byte> safetensors_of(std::span<const std::byte> header) {
  static const std::string k_file = safetensors_file();
  Bytes file(sizeof(std::uint64_t));
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  append(file, header);
  const std::size_t content = sizeof length + safetensors_header_bytes(k_file);
  append(file, std::as_bytes(std::span(k_file)).subspan(content));
  return file;
}

std::vector<std::string> report_seeds() {
  train::TinyRun tiny;
  tiny.precision = "{policy: mixed_float16}";
  train::Run run(tiny.spec());
  const train::TrainResult result = run.finish();
  report::RunInfo info;
  info.started_at = "2026-01-31T12:00:00Z";
  info.id = "0123456789ab";
  info.directory = "run";
  return {report::dump(to_json(report::train_report(run.session(), result, info, false))),
          precision::to_json(
              precision::explain_graph("x = Const\ny = Relu(x)\nz = MatMul(y, y)\n", "g.txt", {}))};
}

std::vector<std::string> state_seeds() {
  train::Progress progress;
  progress.counters = {7, 5, 6, 1, 1, 60, 50};
  progress.sums.metrics = {{"accuracy", 3.5}};
  progress.history.emplace_back();
  progress.history[0].epoch = 1;
  progress.history[0].train = {{"loss", 0.25}};
  const train::FirstNonfinite first{
      "conv", "Conv2D", "conv", "forward", "float16", "inf", 1, 2.5, true};
  progress.scale_events.push_back({1, 2, 3, 32768, 16384, first});
  progress.skips.push_back({2, 3, false, std::nullopt});
  progress.time_to_accuracy = train::TimeToAccuracy{"val_accuracy", 0.9, true, 4, 1, 1.5, 2.5};
  progress.finished = train::Status::completed;
  return {train::to_json(progress), train::to_json(train::Progress())};
}

}  // namespace halfstep::fuzz
