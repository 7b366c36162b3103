#!/bin/bash
# One training run of eight ranks on two nodes:  sbatch configs/slurm/ranks.sh my.yaml
#SBATCH --job-name=halfstep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

# pmix is the protocol of Open MPI; `srun --mpi=list` prints those of this cluster.
status=0
srun --mpi=pmix halfstep train "$1" --run-dir "runs/job-$SLURM_JOB_ID" --resume auto || status=$?
# 75: a checkpoint is written, and the run wants to go on; 8: a rank was lost.
if ((status == 75 || status == 8)); then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
