#include "report/page/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "core/hash.h"
#include "core/ranges.h"
#include "report/context.h"
#include "report/export/xml_text.h"

namespace halfstep::report::page {
namespace {

/// Base64 (RFC 4648) of the bytes given as hexadecimal digits.
std::string base64_of_hex(const std::string& hex) {
  constexpr std::string_view k_digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4U | static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count >= 6) {
      count -= 6;
      text += k_digits[(bits >> static_cast<unsigned>(count)) & 0x3FU];
    }
  }
  if (count > 0) text += k_digits[(bits << static_cast<unsigned>(6 - count)) & 0x3FU];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string script_hash(std::string_view script) {
  return "'sha256-" + base64_of_hex(sha256_hex(std::as_bytes(std::span(script)))) + "'";
}

/// Whether YAML reads the text back as the same string without quotes.
bool is_plain(const std::string& text) {
  constexpr std::string_view k_others = "_-./+";
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         k_others.find(c) != std::string_view::npos;
    if (!allowed) return false;
  }
  for (const std::string_view other :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (text == other) return false;
  }
  return true;
}

/// Whether a cell holds text, which is left-aligned, rather than a number.
bool is_word(const std::string& cell) {
  return !cell.empty() && cell != "-" &&
         std::string_view("0123456789+-.").find(cell[0]) == std::string_view::npos;
}

std::string yaml_scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get<std::string>())) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_flat(const Json& list) {
  for (const Json& item : list) {
    if (item.is_structured()) return false;
  }
  return true;
}

void append_yaml(const Json& json, const std::string& indent, std::string& text) {
  const auto member = [&](const std::string& begin, const Json& value) {
    if (value.is_array() && is_flat(value)) {
      const auto items = mapped<std::string>(value, yaml_scalar);
      text += fmt::format("{}[{}]\n", begin + " ", fmt::join(items, ", "));
    } else if (value.is_structured() && !value.empty()) {
      text += begin + "\n";
      append_yaml(value, indent + "  ", text);
    } else {
      text += begin + " " + yaml_scalar(value) + "\n";
    }
  };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      member(indent + yaml_scalar(Json(key)) + ":", value);
    }
  } else {
    for (const Json& item : json) {
      const std::size_t begin = text.size();
      if (item.is_object() && !item.empty()) {
        append_yaml(item, indent + "  ", text);
        text[begin + indent.size()] = '-';
      } else {
        member(indent + "-", item);
      }
    }
  }
}

}  // namespace

std::string section(std::string_view heading, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", xml_text(heading), body);
}

std::string details(std::string_view summary, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", xml_text(summary), body);
}

std::string table(const Rows& rows) {
  if (rows.size() < 2) return "";
  std::vector<bool> words(rows[0].size(), false);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < std::min(words.size(), rows[i].size()); ++k) {
      words[k] = words[k] || is_word(rows[i][k]);
    }
  }
  std::string text = "<div class=\"scroll\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* tag = i == 0 ? "th" : "td";
    text += i == 0 ? "<thead><tr>" : i == 1 ? "<tbody>\n<tr>" : "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      const bool left = k < words.size() && words[k];
      text += fmt::format(
          "<{0}{1}>{2}</{0}>", tag, left ? " class=\"word\"" : "", xml_text(rows[i][k]));
    }
    text += i == 0 ? "</tr></thead>\n" : "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string value_table(const std::vector<std::pair<std::string, std::string>>& rows) {
  if (rows.empty()) return "";
  std::string text = "<div class=\"scroll\"><table class=\"facts\"><tbody>\n";
  for (const auto& [name, value] : rows) {
    text += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", xml_text(name), xml_text(value));
  }
  return text + "</tbody></table></div>\n";
}

std::string list(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += "<li>" + xml_text(line) + "</li>\n";
  return text + "</ul>\n";
}

std::string paragraph(std::string_view text, std::string_view css_class) {
  if (text.empty()) return "";
  const std::string attribute =
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", xml_text(css_class));
  return fmt::format("<p{}>{}</p>\n", attribute, xml_text(text));
}

std::string preformatted(std::string_view text) {
  return text.empty() ? "" : "<pre>" + xml_text(text) + "</pre>\n";
}

std::string figures(const std::string& body) {
  return body.empty() ? "" : "<div class=\"figures\">\n" + body + "</div>\n";
}

std::string script_json(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    // Outside of strings JSON has none of these characters.
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

std::string yaml_text(const Json& json) {
  std::string text;
  append_yaml(json, "", text);
  return text;
}

std::string document(std::string_view title, const std::string& body) {
  const std::string policy = fmt::format(
      "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
      "script-src {} {}",
      script_hash(chart_script()),
      script_hash(page_script()));
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n"
      "<noscript><style>.figures {{ display: none }}</style></noscript>\n</head>\n<body>\n",
      xml_text(policy),
      xml_text(title),
      page_style());
  text += fmt::format("<header><h1>{}</h1></header>\n<main>\n{}</main>\n", xml_text(title), body);
  text += fmt::format(
      "<footer>\n<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>\n"
      "<p>Written by halfstep {}. This file holds everything it shows and fetches nothing. The "
      "charts are drawn by Chart.js {}, under the MIT licence:</p>\n{}</footer>\n",
      xml_text(build_info().version),
      chart_version(),
      details("Licence of Chart.js", preformatted(chart_licence())));
  text += "<script>";
  text += chart_script();
  text += "</script>\n<script>";
  text += page_script();
  return text + "</script>\n</body>\n</html>\n";
}

}  // namespace halfstep::report::page
