#pragma once
// The lists of the scalar functions, from which the kernels' tables, dispatch and instantiations
// are made. Their order has no meaning.

#include "backend/functions/activation.h"
#include "backend/functions/arithmetic.h"
#include "backend/functions/choice.h"
#include "backend/functions/elementary.h"
#include "backend/functions/erfinv.h"
#include "backend/functions/gelu.h"

namespace halfstep::backend::functions {

template <class... Lists>
struct Joined;
template <class... F>
struct Joined<List<F...>> {
  using type = List<F...>;
};
template <class... F, class... G, class... Lists>
struct Joined<List<F...>, List<G...>, Lists...> : Joined<List<F..., G...>, Lists...> {};

/// The functions of several lists.
template <class... Lists>
using Join = typename Joined<Lists...>::type;

template <template <class> class Condition, class L>
struct Filtered;
template <template <class> class Condition, class... F>
struct Filtered<Condition, List<F...>>
    : Joined<List<>, std::conditional_t<Condition<F>::value, List<F>, List<>>...> {};

/// The functions F of a list with Condition<F>::value.
template <template <class> class Condition, class L>
using Filter = typename Filtered<Condition, L>::type;

using UnaryFunctions =
    Join<UnaryArithmetic, UnaryElementary, List<Erfinv>, UnaryTests, Activations, Gelus>;
using BinaryFunctions = Join<BinaryArithmetic,
                             BinaryElementary,
                             Comparisons,
                             BinaryChoices,
                             ActivationGradients,
                             GeluGradients>;
using TernaryFunctions = TernaryChoices;

}  // namespace halfstep::backend::functions
