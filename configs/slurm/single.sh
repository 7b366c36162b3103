#!/bin/bash
# One training run on one node:  sbatch configs/slurm/single.sh my.yaml
#SBATCH --job-name=halfstep
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

# The job's own directory, the same after a requeue.
status=0
srun halfstep train "$1" --run-dir "runs/job-$SLURM_JOB_ID" --resume auto || status=$?
# 75: a checkpoint is written, and the run wants to go on; 8: another node failed.
if ((status == 75 || status == 8)); then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
