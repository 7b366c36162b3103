#include "targets.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "config/load.h"
#include "config/run_spec.h"
#include "core/error.h"
#include "data/dataset.h"
#include "data/deflate.h"
#include "data/image.h"
#include "data/tensor_files.h"
#include "graph/ops/ops.h"
#include "graph/text.h"
#include "memory_file.h"
#include "nn/step_graph.h"
#include "precision/graph_report.h"
#include "report/export/exporter.h"
#include "report/tables.h"
#include "seeds.h"
#include "train/progress.h"

namespace halfstep::fuzz {
namespace {

using namespace std::string_view_literals;

std::size_t accepted = 0;

/// Runs one input: read, or refused by an error that says so.
template <class Read>
int attempt(Read read) {
  try {
    read();
    ++accepted;
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("error: ") == std::string_view::npos) {
      throw std::logic_error("an error without the word: " + std::string(error.what()));
    }
  }
  return 0;
}

void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

std::span<const std::byte> bytes_of(const std::uint8_t* bytes, std::size_t size) {
  return std::as_bytes(std::span(bytes, size));
}

std::string text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

config::RunSpec spec_of(std::string_view text, bool with_model) {
  Diagnostics diagnostics;
  const config::Node node = config::load_text(text, "input.yaml", diagnostics);
  config::RunSpec spec = config::parse_run_spec(node, diagnostics);
  if (with_model) nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

int test_config(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const std::string printed = config::print(spec_of(text_of(bytes, size), true));
    try {
      expect(config::print(spec_of(printed, false)) == printed, "a printed config reads otherwise");
    } catch (const UserError& error) {
      throw std::logic_error("a printed config is refused: " + std::string(error.what()));
    }
  });
}

int test_graph(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const std::string text = text_of(bytes, size);
    const std::string printed =
        graph::print_graph(graph::parse_graph(text, "input.txt", graph::op_table()));
    expect(graph::print_graph(graph::parse_graph(printed, "printed.txt", graph::op_table())) ==
               printed,
           "a printed graph reads otherwise");
    for (const precision::Mode mode : {precision::Mode::cuda,
                                       precision::Mode::bf16,
                                       precision::Mode::cpu,
                                       precision::Mode::fp16_cpu}) {
      precision::RewriteOptions options;
      options.mode = mode;
      options.rules = config::RewriteRules::tensorflow_2_20;
      const precision::GraphReport report = precision::explain_graph(text, "input.txt", options);
      precision::to_json(report);
      precision::to_table(report);
      precision::to_dot(report);
    }
  });
}

int test_csv(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(bytes_of(bytes, size));
    data::DataOptions options;
    options.format = "csv";
    options.path = file.path();
    options.table = {.target = "y", .on_missing = config::OnMissing::fill};
    const data::Dataset set = data::load_dataset(options);
    expect(set.sample_shape == Shape{set.table->features()}, "a sample of other features");
  });
}

int test_text(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(bytes_of(bytes, size));
    for (const auto& tokens : config::k_text_tokens) {
      data::DataOptions options;
      options.format = "text";
      options.path = file.path();
      options.text = {.length = 2, .tokens = tokens.value, .vocabulary_size = 9, .stride = 1};
      options.test_split = 0.25;
      const data::Dataset set = data::load_dataset(options);
      expect(set.classes == set.text->size(), "other classes than tokens");
    }
  });
}

int test_idx(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] { data::read_idx(MemoryFile(bytes_of(bytes, size)).path()); });
}

/// The input is the content of the compressed file.
int test_idx_content(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(data::deflate(bytes_of(bytes, size), data::Wrapper::gzip));
    data::read_idx(file.path());
  });
}

int test_npy(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] { data::read_npy(bytes_of(bytes, size), "array"); });
}

int test_npz(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(bytes_of(bytes, size));
    const data::NpzReader reader(file.path());
    for (const std::string& name : reader.names()) reader.read(name);
  });
}

/// A picture of any format that its first bytes tell.
int test_image(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(bytes_of(bytes, size));
    data::read_image(file.path());
  });
}

int test_png_content(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(png_of(bytes_of(bytes, size)));
    data::read_image(file.path());
  });
}

void read_safetensors(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const data::SafetensorsReader reader(file.path());
  for (const data::SafetensorsEntry& entry : reader.entries()) reader.read(entry);
}

int test_safetensors(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] { read_safetensors(bytes_of(bytes, size)); });
}

int test_safetensors_header(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] { read_safetensors(safetensors_of(bytes_of(bytes, size))); });
}

int test_report(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const MemoryFile file(bytes_of(bytes, size));
    const report::Document document = report::read_valid_report(file.path());
    report::show(document);
    for (const report::Exporter* exporter : report::export_table()) {
      exporter->write(document.report);
    }
  });
}

int test_state(const std::uint8_t* bytes, std::size_t size) {
  return attempt([&] {
    const train::Progress read = train::progress_from_json(text_of(bytes, size), "state.json");
    const std::string written = train::to_json(read);
    expect(train::to_json(train::progress_from_json(written, "state.json")) == written,
           "a written state reads otherwise");
  });
}

constexpr std::array k_yaml{"{"sv,     "}"sv,        "["sv,      "]"sv,     ": "sv,  "- "sv,
                            "\n  "sv,  "\t"sv,       "'"sv,      "\""sv,    "&a "sv, "*a"sv,
                            "<<: "sv,  "#"sv,        "null"sv,   "~"sv,     "!x "sv, "|"sv,
                            "1e999"sv, "-1"sv,       "1/0"sv,    "0"sv,     "${"sv,  "${env:X}"sv,
                            "---\n"sv, "\xC3\xA9"sv, "type: "sv, "2.20+"sv, "1e3"sv};
constexpr std::array k_graph{"("sv,
                             ")"sv,
                             "{"sv,
                             "}"sv,
                             "["sv,
                             "]"sv,
                             ", "sv,
                             ": "sv,
                             "^"sv,
                             ":1"sv,
                             "@"sv,
                             "\""sv,
                             "\\"sv,
                             "#"sv,
                             "\nx = Const\n"sv,
                             "Mul"sv,
                             "float16"sv,
                             "preserve "sv,
                             "no_kernel "sv,
                             "function "sv,
                             "variable "sv,
                             "result "sv,
                             "99999999999"sv,
                             "N: 3"sv,
                             "1e999"sv,
                             "-1"sv,
                             "Merge"sv,
                             "NextIteration"sv};
constexpr std::array k_csv{","sv,
                           ";"sv,
                           "\t"sv,
                           "\""sv,
                           "\"\""sv,
                           "\r\n"sv,
                           "\r"sv,
                           " "sv,
                           "NA"sv,
                           "y"sv,
                           "1e999"sv,
                           "-1"sv,
                           "nan"sv,
                           "0.5"sv,
                           "\xEF\xBB\xBF"sv,
                           "\xC3\xA9"sv,
                           "\xff"sv};
constexpr std::array k_text{" "sv,
                            "\n"sv,
                            "'"sv,
                            "don't"sv,
                            "the"sv,
                            "\xEF\xBB\xBF"sv,
                            "\xC3\xA9"sv,
                            "\xE2\x82\xAC"sv,
                            "\xF0\x9F\x90\x88"sv,
                            "\xED\xA0\x80"sv,
                            "\xff"sv};
constexpr std::array k_idx{
    "\0\0\x08\x03"sv, "\x7f\xff\xff\xff"sv, "\xff\xff\xff\xff"sv, "\0\0\0\0"sv, "\x1f\x8b\x08"sv};
/// Markers: of the start, frames of each coding, tables, restarts, a scan, the end, applications.
constexpr std::array k_jpeg{"\xff\xd8\xff"sv,
                            "\xff\xc0\0\x11\x08"sv,
                            "\xff\xc1"sv,
                            "\xff\xc2"sv,
                            "\xff\xc3"sv,
                            "\xff\xc4"sv,
                            "\xff\xc9"sv,
                            "\xff\xdb"sv,
                            "\xff\xdd\0\4\0\1"sv,
                            "\xff\xd0"sv,
                            "\xff\xda"sv,
                            "\xff\xd9"sv,
                            "\xff\xe0"sv,
                            "\xff\xee\0\x0e"
                            "Adobe"sv,
                            "\xff\xff\xff\xff"sv,
                            "\0\0"sv,
                            "\x40\0"sv};
constexpr std::array k_npy{"9"sv,
                           "99999999999999999999"sv,
                           "-1"sv,
                           "("sv,
                           ")"sv,
                           ","sv,
                           "{"sv,
                           "}"sv,
                           "'"sv,
                           "True"sv,
                           "'<u8'"sv,
                           "'|O'"sv,
                           "[('a', '<f4')]"sv,
                           "\x93NUMPY\3\0"sv};
constexpr std::array k_zip{"PK\x01\x02"sv,
                           "PK\x03\x04"sv,
                           "PK\x05\x06"sv,
                           "PK\x06\x06"sv,
                           "PK\x06\x07"sv,
                           "\xff\xff\xff\xff"sv,
                           "\x01\0\x10\0"sv};
constexpr std::array k_bmp{
    "BM"sv, "\x28\0\0\0"sv, "\x0c\0\0\0"sv, "\x03\0\0\0"sv, "\xff\xff\xff\xff"sv, "\0\0\x40\0"sv};
constexpr std::array k_png{
    "IHDR"sv, "IDAT"sv, "IEND"sv, "PLTE"sv, "\xff\xff\xff\xff"sv, "\0\0\0\0"sv, "\0\0\x40\0"sv};
constexpr std::array k_json{"{"sv,
                            "}"sv,
                            "["sv,
                            "]"sv,
                            "\""sv,
                            ","sv,
                            ":"sv,
                            "1e999"sv,
                            "-1"sv,
                            "1.5"sv,
                            "null"sv,
                            "true"sv,
                            "\"inf\""sv,
                            "9223372036854775807"sv,
                            "18446744073709551615"sv,
                            "1e300"sv,
                            "{}"sv,
                            "[]"sv,
                            "\"F64\""sv,
                            "\\ud800"sv,
                            "\"kind\": "sv};

constexpr std::array k_targets{
    Target{"bmp", test_image, bmp_seeds, k_bmp},
    Target{"config", test_config, config_seeds, k_yaml},
    Target{"csv", test_csv, csv_seeds, k_csv},
    Target{"graph", test_graph, graph_seeds, k_graph},
    Target{"idx", test_idx, idx_seeds, k_idx},
    Target{"idx_content", test_idx_content, idx_seeds, k_idx},
    Target{"idx_gz", test_idx, idx_gz_seeds, k_idx},
    Target{"jpeg", test_image, jpeg_seeds, k_jpeg},
    Target{"npy", test_npy, npy_seeds, k_npy},
    Target{"npz", test_npz, npz_seeds, k_zip},
    Target{"png", test_image, png_seeds, k_png},
    Target{"png_content", test_png_content, png_content_seeds, k_png},
    Target{"report", test_report, report_seeds, k_json},
    Target{"safetensors", test_safetensors, safetensors_seeds, k_json},
    Target{"safetensors_header", test_safetensors_header, safetensors_header_seeds, k_json},
    Target{"state", test_state, state_seeds, k_json},
    Target{"text", test_text, text_seeds, k_text},
};

}  // namespace

std::span<const Target> targets() { return k_targets; }

const Target* find_target(std::string_view name) {
  const auto found = std::find_if(
      k_targets.begin(), k_targets.end(), [&](const Target& t) { return t.name == name; });
  return found == k_targets.end() ? nullptr : &*found;
}

std::size_t accepted_inputs() { return accepted; }

}  // namespace halfstep::fuzz
