"""The programs that are measured: halfstep, a process a turn, and other frameworks, held open."""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "scripts/bench/peers"
SCRIPTS = {"torch": "torch_steps.py", "keras": "keras_steps.py", "jax": "jax_steps.py"}


def output(command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr[-2000:])
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def config_path(name):
    """A shipped config, or one that is only measured."""
    shipped = ROOT / f"configs/{name}.yaml"
    return shipped if shipped.exists() else ROOT / f"scripts/bench/{name}.yaml"


class Halfstep:
    """One policy of one config at one batch size."""

    pids = ()  # a turn's process has ended when its time is counted

    def __init__(self, program, config, batch, policy, threads, max_isa=None):
        self.command = [str(program), "bench", str(config_path(config)), "--json", "-q"]
        self.command += ["--synthetic", "--batch-size", str(batch), "--threads", str(threads)]
        self.command += ["--policies", policy, "--repeat", "1"]
        self.environment = dict(os.environ)
        if max_isa:
            self.environment["HALFSTEP_MAX_ISA"] = max_isa
        self.step_seconds = None
        self.report = None
        self.warm = False  # whether step_seconds comes from more than a first step

    def bench(self, steps, warmup, *more):
        command = [*self.command, "--steps", str(steps), "--warmup", str(warmup), *more]
        self.report = json.loads(output(command, env=self.environment))
        self.step_seconds = self.report["step_time"]["median"] * 1e-3
        return self.report

    def turn(self, seconds):
        """One sample of about so many seconds, in a process of its own."""
        if self.step_seconds is None:
            self.bench(1, 0)
        if not self.warm and self.step_seconds < seconds / 2:
            self.bench(3, 2)
        self.warm = True
        steps = max(1, min(5000, round(seconds / self.step_seconds)))
        start = time.perf_counter()
        report = self.bench(steps, 2 if steps > 3 else 0)
        wall = time.perf_counter() - start
        times = report["step_time"]
        return {
            "seconds": times["median"] * 1e-3,
            "mean": times["mean"] * 1e-3,
            "steps": times["n"],
            "wall": wall,
        }

    def profile(self, seconds):
        """A report with a profile; None where it would take more than half a minute."""
        if 10 * self.step_seconds > 30:
            return None
        steps = max(3, min(50, round(seconds / self.step_seconds)))
        return self.bench(steps, 1, "--profile")

    @property
    def flops(self):
        return self.report["throughput"]["flops_per_step"]

    @property
    def resolved(self):
        return self.report["config"]["resolved"]

    def memory(self):
        memory = self.report["memory"]
        return {key: memory[key] for key in ("host_peak_rss_bytes", "planned_arena_bytes")}


class PeerMode:
    """A mode of a peer that is held open."""

    def __init__(self, peer, name):
        self.peer, self.name = peer, name
        # Time that the other peers use, which should sleep now, counts as taken.
        self.pids = (peer.process.pid,)

    def turn(self, seconds):
        start = time.perf_counter()
        answer = self.peer.ask({"mode": self.name, "seconds": seconds})
        wall = time.perf_counter() - start
        keys = ("seconds", "mean", "steps", "processors")
        return {key: answer[key] for key in keys} | {"wall": wall}


class Peer:
    """A framework's script, which keeps the model of every mode compiled between turns.

    `modes` are those that run; `notes` say of each which variant was the fastest, or why it is left
    out; `versions` are the framework's.
    """

    def __init__(self, python, name, config, batch, threads, precisions, log):
        task = {"config": config, "batch": batch, "threads": threads, "precisions": precisions}
        folder = ROOT / "build/bench-cache"
        environment = dict(
            os.environ, OMP_NUM_THREADS=str(threads), TORCHINDUCTOR_CACHE_DIR=str(folder)
        )
        self.name = name
        self.modes, self.notes, self.versions = [], {}, {}
        self.process = subprocess.Popen(
            [python, str(PEERS / SCRIPTS[name]), json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        while True:
            line = self.read()
            if line is None or "failed" in line:
                why = "the script ended" if line is None else line["failed"]
                self.notes[name] = f"not measured: {why}"
                break
            if "versions" in line:
                self.versions = line["versions"]
            elif "mode" in line:
                self.notes[line["mode"]] = line["note"]
                if line["runs"]:
                    self.modes.append(PeerMode(self, line["mode"]))
            elif line.get("ready"):
                break

    def read(self):
        """The next JSON line; None when the script has ended."""
        for text in self.process.stdout:
            if text.startswith("{"):
                return json.loads(text)
        return None

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.read()
        if answer is None:
            raise RuntimeError(f"{self.name} ended")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class BusyProcesses:
    """Processes that do nothing but use a processor each."""

    def __init__(self, count):
        command = [sys.executable, "-c", "while True: pass"]
        self.processes = [subprocess.Popen(command) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
