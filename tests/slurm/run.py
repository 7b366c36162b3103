#!/usr/bin/env python3
"""Runs halfstep under a real Slurm: munged, slurmctld and slurmd as processes of this machine.

    run.py PROGRAM      the built halfstep

Exit status 77, which CTest shows as skipped, where Slurm or Open MPI is not installed or the user is
not root (slurmd starts jobs for users).
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
TOOLS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "scancel", "mpirun"]
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent

# Long enough for a signal in its middle, on any machine that runs tests.
CONFIG = """\
version: 1
name: small
seed: 7
data: {name: synthetic_digits, train_samples: 8192, test_samples: 128}
model:
  input: [784]
  layers:
    - {type: dense, units: 16, activation: relu, name: hidden}
    - {type: dropout, rate: 0.25}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 60, batch_size: 8, checkpoint_every: {steps: 9000}}
"""

SLURM_CONF = """\
ClusterName=local
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
SwitchType=switch/none
MpiDefault=none
KillWait=5
NodeName=localhost CPUs={cpus} State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4 PreemptMode=OFF
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def output(words, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout.strip()


def wait_until(what, seconds, test):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return
        time.sleep(0.1)
    raise RuntimeError(f"not within {seconds} s: {what}")


class LocalSlurm:
    """A cluster of one node, which ends with the block."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []

    def __enter__(self):
        for name in ["munge", "state", "spool"]:
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = self.folder / "munge"
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                    f"--seed-file={munge}/seed")
        wait_until("munged answers", 20, (munge / "socket").exists)
        conf = self.folder / "slurm.conf"
        # Two tasks at least: ranks may share a processor.
        conf.write_text(SLURM_CONF.format(folder=self.folder, cpus=max(2, os.cpu_count())))
        os.environ["SLURM_CONF"] = str(conf)
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D")
        wait_until("the node is idle", 60, lambda: "idle" in self.sinfo())
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def daemon(self, name, *arguments):
        log = open(self.folder / f"{name}.out", "w")
        self.daemons.append(subprocess.Popen([name, *arguments], stdout=log, stderr=log))

    @staticmethod
    def sinfo():
        return subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True).stdout


def report(folder):
    return json.loads((folder / "report.json").read_text())


def has_steps(folder):
    metrics = folder / "metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


def state_of(job):
    return output(["squeue", "-h", "-j", job, "-t", "all", "-o", "%T"])


def srun_trains_as_mpirun_does(work):
    arguments = ["halfstep", "train", "run.yaml", "--threads", "1", "--max-steps", "200", "--run-dir"]
    output(["srun", "--mpi=pmix", "-n", "2", *arguments, "srun"], cwd=work)
    output(["mpirun", "-np", "2", *arguments, "mpirun"], cwd=work)
    by_srun, by_mpirun = report(work / "srun"), report(work / "mpirun")
    assert by_srun["run"]["rank_count"] == 2, by_srun["run"]
    assert by_srun["reproducibility"] == by_mpirun["reproducibility"]


def ranks_without_a_protocol_are_refused(work):
    done = subprocess.run(
        ["srun", "--mpi=none", "-n", "2", "halfstep", "train", "run.yaml", "--run-dir", "none"],
        cwd=work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 6, (done.returncode, done.stderr)
    assert "--mpi=pmix" in done.stderr, done.stderr


def start_again(job):
    """Starts a requeued job, which Slurm lets wait for two minutes.

    Not within the second in which it was requeued: slurmd then refuses its revoked credential.
    """
    output(["scontrol", "update", f"jobid={job}", "StartTime=now+3"])


def a_signalled_job_is_requeued_and_ends_as_if_it_had_not_been(work):
    script = SOURCE / "configs" / "slurm" / "ranks.sh"
    shape = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"]
    job = output(["sbatch", "--parsable", *shape, str(script), "run.yaml"], cwd=work)
    run = work / "runs" / f"job-{job}"
    wait_until("the job trains", 60, lambda: has_steps(run))
    output(["scancel", "--signal=USR1", job])
    wait_until("the job is requeued", 60, lambda: state_of(job) == "PENDING")
    left = report(run)
    assert (left["status"], left["exit_code"]) == ("preempted", 75), left["status"]
    start_again(job)
    wait_until("the job ends", 300, lambda: state_of(job) == "COMPLETED")
    ended = report(run)
    assert ended["status"] == "completed", ended["status"]
    assert ended["run"]["restart_count"] == 1, ended["run"]
    output(["srun", "--mpi=pmix", "-n", "2", "halfstep", "train", "run.yaml", "--run-dir", "whole"],
           cwd=work)
    whole = report(work / "whole")
    assert ended["reproducibility"] == whole["reproducibility"]


def a_job_that_a_more_urgent_one_preempts_goes_on_after_it(work):
    script = SOURCE / "configs" / "slurm" / "ranks.sh"
    shape = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"]
    job = output(["sbatch", "--parsable", "--partition=low", *shape, str(script), "run.yaml"], cwd=work)
    run = work / "runs" / f"job-{job}"
    wait_until("the job trains", 60, lambda: has_steps(run))
    urgent = output(["sbatch", "--parsable", "--partition=urgent", "--exclusive", "--wrap", "sleep 1"], cwd=work)
    wait_until("the job is requeued", 60, lambda: state_of(job) == "PENDING")
    left = report(run)
    assert (left["status"], left["exit_code"]) == ("preempted", 75), left["status"]
    wait_until("the urgent job ends", 120, lambda: state_of(urgent) == "COMPLETED")
    start_again(job)
    wait_until("the job ends", 300, lambda: state_of(job) == "COMPLETED")
    ended = report(run)
    assert ended["run"]["restart_count"] == 1, ended["run"]
    assert ended["reproducibility"] == report(work / "whole")["reproducibility"]


def a_job_saves_before_its_time_limit_and_is_requeued_until_the_run_ends(work):
    script = SOURCE / "configs" / "slurm" / "ranks.sh"
    shape = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"]
    # Slurm's shortest limit, of a minute; training ends after about fifteen seconds of it.
    limited = work / "limited.yaml"
    limited.write_text(CONFIG.replace("epochs: 60", f"epochs: 100000, stop_before_time_limit: 45"))
    begin = time.monotonic()
    job = output(["sbatch", "--parsable", *shape, "--time=1", "--signal=USR2@1", str(script), "limited.yaml"],
                 cwd=work)
    run = work / "runs" / f"job-{job}"
    wait_until("the job is requeued", 60, lambda: state_of(job) == "PENDING" and run.exists())
    seconds = time.monotonic() - begin
    assert 10 < seconds < 40, f"it left after {seconds:.0f} s of 60, with 45 s asked for"
    left = report(run)
    assert (left["status"], left["exit_code"]) == ("preempted", 75), left["status"]
    assert left["message"] == "the time limit is near; please requeue", left["message"]
    epochs = len(left["history"]["epoch"]) + 1
    limited.write_text(CONFIG.replace("epochs: 60", f"epochs: {epochs}, stop_before_time_limit: 45"))
    start_again(job)
    wait_until("the job ends", 120, lambda: state_of(job) == "COMPLETED")
    ended = report(run)
    assert ended["run"]["restart_count"] == 1, ended["run"]
    output(["srun", "--mpi=pmix", "-n", "2", "halfstep", "train", "limited.yaml", "--run-dir",
            "unlimited"], cwd=work)
    assert ended["reproducibility"] == report(work / "unlimited")["reproducibility"]


def an_array_of_runs_becomes_one_comparison(work):
    script = SOURCE / "configs" / "slurm" / "compare_array.sh"
    short = work / "short.yaml"
    short.write_text(CONFIG.replace("epochs: 60, batch_size: 8", "epochs: 1, batch_size: 64"))
    job = output(["sbatch", "--parsable", "--cpus-per-task=1", str(script), "short.yaml"], cwd=work)
    runs = work / "runs" / f"array-{job}"
    wait_until("all tasks end", 300, lambda: len(list(runs.glob("*/report.json"))) == 9 and all(
        report(run)["status"] == "completed" for run in runs.iterdir()))
    # A task that is repeated changes nothing.
    before = (runs / "float32-1" / "report.json").read_bytes()
    output(["halfstep", "train", "short.yaml", "--policy", "float32", "--seed", "1", "--resume",
            "auto", "--run-dir", str(runs / "float32-1")], cwd=work)
    assert (runs / "float32-1" / "report.json").read_bytes() == before
    comparison = json.loads(output(
        ["halfstep", "compare", *sorted(str(run) for run in runs.iterdir()), "--json"], cwd=work))
    assert comparison["kind"] == "compare", comparison["kind"]
    assert len(comparison["runs"]) == 9, len(comparison["runs"])


def the_shards_of_an_array_become_one_comparison(work):
    script = SOURCE / "configs" / "slurm" / "compare_shards.sh"
    short = work / "short.yaml"
    short.write_text(CONFIG.replace("epochs: 60, batch_size: 8", "epochs: 1, batch_size: 64"))
    # The batch script has tasks of eight threads.
    os.environ["HALFSTEP_THREADS"] = "1"
    job = output(["sbatch", "--parsable", "--wait", "--cpus-per-task=1", str(script), "short.yaml"],
                 cwd=work)
    shards = work / "runs" / f"shards-{job}"
    merged = json.loads(output(["halfstep", "compare", "--merge", str(shards), "--json"], cwd=work))
    whole = json.loads(output(
        ["halfstep", "compare", "short.yaml", "--seeds", "9", "--no-run-dir", "--json"], cwd=work))
    assert len(merged["runs"]) == 27, len(merged["runs"])
    assert merged["pairs"] == whole["pairs"]
    assert [run["final_hash"] for run in merged["runs"]] == [run["final_hash"] for run in whole["runs"]]


def main():
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or os.getuid() != 0:
        print(f"skipped: needs root, slurm-wlm and openmpi-bin; missing: {missing}")
        return SKIPPED
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    with tempfile.TemporaryDirectory(prefix="halfstep-slurm-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        work = folder / "work"
        work.mkdir()
        (work / "run.yaml").write_text(CONFIG)
        with LocalSlurm(folder):
            for case in [srun_trains_as_mpirun_does, ranks_without_a_protocol_are_refused,
                         a_signalled_job_is_requeued_and_ends_as_if_it_had_not_been,
                         a_job_that_a_more_urgent_one_preempts_goes_on_after_it,
                         a_job_saves_before_its_time_limit_and_is_requeued_until_the_run_ends,
                         an_array_of_runs_becomes_one_comparison,
                         the_shards_of_an_array_become_one_comparison]:
                begin = time.monotonic()
                try:
                    case(work)
                except Exception:
                    for log in sorted(folder.glob("*.log")) + sorted(work.glob("slurm-*.out")):
                        print(f"--- {log.name}\n{log.read_text()[-3000:]}")
                    raise
                print(f"{case.__name__}: ok ({time.monotonic() - begin:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
