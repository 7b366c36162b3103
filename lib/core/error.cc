#include "core/error.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/printable.h"

namespace halfstep {
namespace {

/// One line, safe on a terminal whatever characters the user's files and names contain.
std::string describe(const Problem& problem) {
  std::string text = to_string(problem.where);
  if (!text.empty()) text += ": ";
  text += "error: " + problem.message;
  if (!problem.hint.empty()) text += " (" + problem.hint + ")";
  return printable(text);
}

std::string describe(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += describe(problem);
  }
  return text;
}

/// Optimal string alignment distance: insertions, deletions, substitutions, neighbour swaps.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

std::string to_string(const Where& where) {
  std::string text = where.file;
  if (where.line > 0) text += fmt::format(":{}", where.line);
  if (where.line > 0 && where.column > 0) text += fmt::format(":{}", where.column);
  if (!where.path.empty()) text += (text.empty() ? "" : ": ") + where.path;
  return text;
}

UserError::UserError(ErrorKind kind, Where where, std::string message, std::string hint)
    : UserError(kind, {Problem{std::move(where), std::move(message), std::move(hint)}}) {}

/// The text has no control characters of files and names: see core/printable.h.
UserError::UserError(ErrorKind kind, std::vector<Problem> problems)
    : std::runtime_error(describe(problems)), kind_(kind), problems_(std::move(problems)) {}

InternalError::InternalError(const std::string& message, const std::source_location& location)
    : std::logic_error(
          fmt::format("{}:{}: {}", location.file_name(), location.line(), printable(message))) {}

void Diagnostics::error(Where where, std::string message, std::string hint) {
  // A block that is used several times, and the value of an alias, are read once for each use.
  const auto same = [&](const Problem& known) {
    const bool inside = where.line > 0 || known.where.path == where.path;
    return inside && known.where.file == where.file && known.where.line == where.line &&
           known.where.column == where.column && known.message == message;
  };
  if (std::ranges::any_of(problems_, same)) return;
  problems_.push_back({std::move(where), std::move(message), std::move(hint)});
}

std::vector<Problem> Diagnostics::in_order() const {
  std::vector<std::string> files;
  const auto file_index = [&files](const Problem& problem) {
    return std::ranges::find(files, problem.where.file) - files.begin();
  };
  for (const Problem& problem : problems_) {
    if (file_index(problem) == std::ssize(files)) files.push_back(problem.where.file);
  }
  std::vector<Problem> sorted = problems_;
  std::ranges::stable_sort(sorted, [&](const Problem& a, const Problem& b) {
    return std::tuple(file_index(a), a.where.line, a.where.column) <
           std::tuple(file_index(b), b.where.line, b.where.column);
  });
  return sorted;
}

void Diagnostics::throw_if_any(ErrorKind kind) const {
  if (!problems_.empty()) throw UserError(kind, in_order());
}

namespace {

/// A name in small letters without underscores: meaniou of MeanIoU and of mean_io_u.
std::string joined(std::string_view name) {
  std::string letters = lower_case(name);
  std::erase(letters, '_');
  return letters;
}

/// The first letters of the words of a name: lr of learning_rate.
std::string initials(std::string_view name) {
  std::string letters;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') letters += name[i];
  }
  return letters;
}

}  // namespace

std::string nearest(std::string_view given, const std::vector<std::string>& known) {
  // The distance costs the product of both lengths, and no plausible typo is this long.
  constexpr std::size_t k_longest = 200;
  if (given.size() > k_longest) return {};
  const std::size_t limit = std::max<std::size_t>(2, given.size() / 3);
  const std::string small = lower_case(given);
  for (const std::string& word : known) {
    if (small.size() < 2) break;
    if (small == word || small == initials(word) || joined(given) == joined(word)) return word;
  }
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& word : known) {
    // A name that is cut short, such as acc, is no further away than one with a wrong letter.
    constexpr std::size_t k_cut = 3;
    const bool cut = given.size() >= k_cut && word.starts_with(given);
    if (!cut && word.size() > given.size() + limit) continue;
    const std::size_t distance = cut ? 1 : edit_distance(given, word);
    if (distance < best_distance && distance < word.size()) {
      best = word;
      best_distance = distance;
    }
  }
  // Far by edits, but a part of the name, as `keep` is of `keep_checkpoints`.
  constexpr std::size_t k_near = 2;
  if (best_distance <= k_near) return best;
  const auto words = [](std::string_view name) { return "_" + std::string(name) + "_"; };
  std::string part;
  for (const std::string& word : known) {
    const bool contained = words(given).find(words(word)) != std::string::npos;
    if (contained && word.size() > part.size()) part = word;
  }
  return part.empty() ? best : part;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  const std::string word = nearest(given, known);
  return word.empty() ? "" : fmt::format("did you mean '{}'?", word);
}

std::string choices(std::string_view given,
                    const std::vector<std::string>& known,
                    std::string_view see) {
  constexpr std::size_t k_few = 20;
  std::string all;
  if (known.size() <= k_few) {
    for (const std::string& word : known) all += (all.empty() ? "one of " : ", ") + word;
  } else if (!see.empty()) {
    all = fmt::format("'{}' lists all {}", see, known.size());
  }
  const std::string hint = did_you_mean(given, known);
  return hint.empty() || all.empty() ? hint + all : hint + " " + all;
}

}  // namespace halfstep
