#pragma once
// Tables of text.

#include <string>
#include <vector>

namespace halfstep::report {

/// The rows with their cells padded to the widest of each column, two spaces between columns, a
/// newline after each row. Cells of `right` columns are pushed to the right. Steering characters in
/// cells become escapes (core/printable.h).
std::string columns(std::vector<std::vector<std::string>> rows,
                    const std::vector<std::size_t>& right = {});

/// Milliseconds with about three digits: 0.123, 4.90, 12.3, 812.
std::string milliseconds(double value);

}  // namespace halfstep::report
