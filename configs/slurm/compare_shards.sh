#!/bin/bash
# A comparison with nine seeds, as an array of three jobs, each of which has three seeds:
#   job=$(sbatch --parsable configs/slurm/compare_shards.sh my.yaml)
#   sbatch --dependency=afterok:$job --wrap "halfstep compare --merge runs/shards-$job"
# A task that fails or is ended may be repeated: it trains only the runs that are missing.
#SBATCH --job-name=halfstep-compare
#SBATCH --array=0-2
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append

srun halfstep compare "$1" --array --seeds 9 --run-dir "runs/shards-$SLURM_ARRAY_JOB_ID"
