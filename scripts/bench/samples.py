"""Step times of modes that took turns, and ratios of them.

A sample is one short turn of one mode: {seconds (median step), mean, steps, peak: {unit: [before,
after]}, taken, stolen}. Samples of the modes of a workload are interleaved, forth and back, so that a
slow spell of the host hits all of them.

A ratio of two modes takes the best sample of each, as other tenants only add time: it is the ratio of
the undisturbed processor. It is trusted only where the peaks beside both samples are alike, since the
units slow down by different factors (AMX to 0.4, float32 to 0.65 of its rate on one host): else the
fastest pair of samples with like peaks is taken, and without such a pair the ratio is marked.
"""

from machine import UNITS

LIKE = 1.15  # peaks that differ by less are alike


def fastest_unit(samples):
    """The fastest unit whose peak is beside the samples; None without one."""
    for unit in UNITS:
        if any(unit in sample["peak"] for sample in samples):
            return unit
    return None


def unit_of(mode, samples):
    """The unit that bounds a mode's matmuls: float32 FMA for float32, and for float16 without AMX."""
    fastest = fastest_unit(samples)
    half = "bfloat16" in mode or ("float16" in mode and fastest == "amx_bf16")
    return fastest if half or fastest is None else "float32"


def level(sample, unit):
    """The lower one of the peaks before and after a sample."""
    return min(sample["peak"].get(unit, [0.0]))


def alike(a, b, unit):
    if unit is None:
        return True
    low, high = sorted((level(a, unit), level(b, unit)))
    return high <= LIKE * low


def undisturbed(samples):
    """How many samples others left alone: at most a tenth of the processors' time was taken."""
    return sum(sample["taken"] + sample["stolen"] <= 0.1 for sample in samples)


def best(samples):
    return min(samples, key=lambda sample: sample["seconds"], default=None)


def speedup(slow, fast):
    """How many times as fast `fast` is as `slow`, both lists of samples.

    {ratio, rounds: "best", "like peaks" or "unlike peaks"}, or None when one has no sample.
    """
    if not slow or not fast:
        return None
    unit = fastest_unit([*slow, *fast])
    a, b = best(slow), best(fast)
    rounds = "best"
    if not alike(a, b, unit):
        pairs = [(s, f) for s in slow for f in fast if alike(s, f, unit)]
        rounds = "like peaks" if pairs else "unlike peaks"
        if pairs:
            least_slow, least_fast = a["seconds"], b["seconds"]
            a, b = min(
                pairs,
                key=lambda p: p[0]["seconds"] / least_slow + p[1]["seconds"] / least_fast,
            )
    return {"ratio": a["seconds"] / b["seconds"], "rounds": rounds}


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def peak_share(samples, flops, unit):
    """Median share of the unit's peak beside each sample, over samples whose peak held still.

    A peak that changed during a sample says little about it: such samples count only where there are
    no others. None without a peak or operations.
    """
    known = [sample for sample in samples if unit in sample["peak"]]
    if not known or not flops:
        return None
    still = [s for s in known if max(s["peak"][unit]) <= LIKE * min(s["peak"][unit])]
    shares = []
    for sample in still or known:
        beside = sum(sample["peak"][unit]) / 2 * 1e9
        shares.append(flops / sample["seconds"] / beside)
    return median(shares)


def fair_share(quiet, busy, processors, busy_processes):
    """Time beside busy processes over the time that a fair share of the processors allows.

    p threads on p processors with q busy processes beside them get p / (p + q) of the time. Means:
    a step that waits for a time slice is rare and long, and the median would hide it. The median
    sample of the busy ones counts, as the scheduler may favour either side for a while.
    """
    if not quiet or not busy:
        return None
    alone = min(sample["mean"] for sample in quiet)
    shared = median([sample["mean"] for sample in busy])
    return shared / (alone * (processors + busy_processes) / processors)
