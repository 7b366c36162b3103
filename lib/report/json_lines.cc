#include "report/json_lines.h"

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace halfstep::report {

void JsonLines::append(const Json& line) {
  if (path_.empty()) return;
  const auto fail = [&] {
    throw UserError(ErrorKind::data, {path_, 0, 0, ""}, std::strerror(errno));
  };
  if (!file_) file_.reset(std::fopen(path_.c_str(), "ae"));
  if (!file_) fail();
  Json finite = line;
  name_nonfinite(finite);
  if (finite["nonfinite"].empty()) finite.erase("nonfinite");
  const std::string text = finite.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) fail();
}

}  // namespace halfstep::report
