#include "nn/model_order.h"

#include <cstddef>

namespace halfstep::nn {
namespace {

enum class Mark : char { fresh, open, done };

/// A node on the path of the depth-first search and the index of its next source.
struct Step {
  int node;
  std::size_t next = 0;
};

}  // namespace

ModelOrder order_of(const SourceNodes& sources) {
  ModelOrder result;
  std::vector<Mark> marks(sources.size(), Mark::fresh);
  for (std::size_t start = 0; start < sources.size(); ++start) {
    if (marks[start] != Mark::fresh) continue;
    std::vector<Step> path{{static_cast<int>(start)}};
    marks[start] = Mark::open;
    while (!path.empty()) {
      Step& step = path.back();
      const std::vector<int>& taken = sources[static_cast<std::size_t>(step.node)];
      if (step.next == taken.size()) {
        marks[static_cast<std::size_t>(step.node)] = Mark::done;
        result.order.push_back(step.node);
        path.pop_back();
        continue;
      }
      const int source = taken[step.next++];
      if (source < 0) continue;
      Mark& mark = marks[static_cast<std::size_t>(source)];
      if (mark == Mark::open) {
        std::size_t first = 0;
        while (path[first].node != source) ++first;
        for (; first < path.size(); ++first) result.cycle.push_back(path[first].node);
        return result;
      }
      if (mark == Mark::fresh) {
        mark = Mark::open;
        path.push_back({source});
      }
    }
  }
  return result;
}

std::vector<bool> reaches(const SourceNodes& sources, std::vector<int> open) {
  std::vector<bool> reached(sources.size(), false);
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (node < 0 || reached[static_cast<std::size_t>(node)]) continue;
    reached[static_cast<std::size_t>(node)] = true;
    const std::vector<int>& taken = sources[static_cast<std::size_t>(node)];
    open.insert(open.end(), taken.begin(), taken.end());
  }
  return reached;
}

}  // namespace halfstep::nn
