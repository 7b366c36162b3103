// One page with everything in it: no script, font or picture from elsewhere.

#include <array>

#include "report/export/exporter.h"
#include "report/export/facts.h"
#include "report/page/markup.h"
#include "report/page/pages.h"

namespace halfstep::report {
namespace {

struct PageOfKind {
  std::string_view kind;
  std::string (*body)(const Json& report);
};

constexpr std::array k_pages{PageOfKind{"train", page::train_body},
                             PageOfKind{"compare", page::compare_body},
                             PageOfKind{"bench", page::bench_body},
                             PageOfKind{"eval", page::eval_body},
                             PageOfKind{"explain", page::explain_body}};

std::string write_html(const Json& report) {
  std::string body;
  for (const PageOfKind& row : k_pages) {
    if (report.at("kind") == row.kind) body = row.body(report);
  }
  return page::document(title(report), body);
}

}  // namespace

constinit const Exporter k_html{
    "html", "report.html", "train compare bench eval explain", write_html};

}  // namespace halfstep::report
