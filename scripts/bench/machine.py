"""The processor beside the samples: register peaks, copy bandwidth, and who else uses it.

A shared host changes under a measurement: a neighbour on the same core halves the rate of AMX for
seconds without any processor time being taken. So every sample carries the register peaks measured
right before and right after it, and the share of processor time that other programs took during it.
"""

import json
import os
import pathlib
import resource
import subprocess

TICK = os.sysconf("SC_CLK_TCK")
# Units from the fastest to the slowest; the first one measured tells the state of the processor.
UNITS = ("amx_bf16", "avx512_bf16", "float32")
UNIT_NAMES = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16", "float32": "float32 FMA"}


class PeakMeter:
    """bench_peak, held open. Where no unit is known, its readings have the copy alone."""

    def __init__(self, program, max_isa=None):
        command = [str(program), *([max_isa] if max_isa else [])]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.isa = self.now()["isa"]

    def now(self):
        """{isa, copy: GB/s, unit: GFLOP/s of each unit, running: share of time it had processors}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("bench_peak ended")
        measured = json.loads(line)
        peaks = {unit["unit"]: unit["gflops"] for unit in measured["units"]}
        running = [r for unit in measured["units"] for r in unit["running"]]
        return peaks | {
            "isa": measured["isa"],
            "copy": measured["copy_gbs"],
            "running": sum(running) / len(running) if running else None,
        }

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def beside(before, after):
    """{unit or copy: [before, after]} of two readings of a meter."""
    keys = [key for key in (*UNITS, "copy") if key in before and key in after]
    return {key: [before[key], after[key]] for key in keys}


def processor_seconds():
    """(busy, stolen) seconds since boot of the processors that this process may use.

    (0, 0) where /proc does not say.
    """
    try:
        text = pathlib.Path("/proc/stat").read_text()
    except OSError:
        return 0.0, 0.0
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = [line.split() for line in text.splitlines() if line]
    times = [[int(word) / TICK for word in words[1:9]] for words in lines if words[0] in names]
    # user, nice, system, idle, iowait, irq, softirq, steal
    return sum(sum(t[:3]) + sum(t[5:7]) for t in times), sum(t[7] for t in times)


def seconds_of(pid):
    """Processor seconds that a running process has used, and its finished children."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    # The name, in parentheses, may hold spaces. utime, stime, cutime, cstime follow it.
    fields = text.rsplit(")", 1)[1].split()
    return sum(int(word) for word in fields[11:15]) / TICK


class Usage:
    """How much processor time others took between its making and `taken()`."""

    def __init__(self, pids=()):
        self.pids = list(pids)
        self.start = self.reading()

    def reading(self):
        own = sum(
            usage.ru_utime + usage.ru_stime
            for usage in (
                resource.getrusage(resource.RUSAGE_SELF),
                resource.getrusage(resource.RUSAGE_CHILDREN),
            )
        )
        own += sum(seconds_of(pid) for pid in self.pids)
        busy, stolen = processor_seconds()
        return own, busy, stolen

    def taken(self, wall):
        """(share taken by other processes, share stolen by the host) of those processors' time.

        /proc counts in hundredths of a second: shorter samples say nothing and give 0.
        """
        if wall < 0.1:
            return 0.0, 0.0
        own, busy, stolen = (now - then for now, then in zip(self.reading(), self.start))
        available = wall * len(os.sched_getaffinity(0))
        others = min(1.0, max(0.0, (busy - own - 0.02) / available))
        return others, min(1.0, max(0.0, stolen / available))


def first_line(path):
    try:
        return pathlib.Path(path).read_text().strip().splitlines()[0]
    except (OSError, IndexError):
        return None


def description():
    """Model, processors, governor and load, as the system tells them."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return {
        "model": models[0] if models else "unknown",
        "processors": len(os.sched_getaffinity(0)),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load_average": os.getloadavg()[0],
    }


def state(samples):
    """How quiet the processor was over `samples`, from the peaks beside them and the time taken."""
    peaks = [sample["peak"] for sample in samples if sample["peak"]]
    ranges = {}
    for key in (*UNITS, "copy"):
        values = [value for peak in peaks for value in peak.get(key, [])]
        if values:
            ranges[key] = [min(values), max(values)]
    count = max(1, len(samples))
    found = {
        "ranges": ranges,
        "taken": sum(sample["taken"] for sample in samples) / count,
        "stolen": sum(sample["stolen"] for sample in samples) / count,
    }
    return found | {"verdict": verdict(found)}


def verdict(found):
    """ "quiet", or a description of the disturbances."""
    words = []
    taken = found["taken"] + found["stolen"]
    if taken > 0.03:
        words.append(f"busy: {taken * 100:.0f} % of processor time was taken by others")
    for unit in UNITS:
        if unit not in found["ranges"]:
            continue
        low, high = found["ranges"][unit]
        if high > 1.2 * low:
            words.append(
                f"the {UNIT_NAMES[unit]} rate varied between {low / 1e3:.2f} and"
                f" {high / 1e3:.2f} TFLOP/s"
            )
        break
    return "; ".join(words) or "quiet"
