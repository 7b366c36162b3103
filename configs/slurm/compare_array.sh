#!/bin/bash
# A comparison of three precisions with three seeds each, as an array of nine jobs:
#   job=$(sbatch --parsable configs/slurm/compare_array.sh my.yaml)
#   sbatch --dependency=afterok:$job --wrap "halfstep compare runs/array-$job/*"
# A task that fails or is ended may be repeated: it resumes its run, and one that has ended does nothing again.
#SBATCH --job-name=halfstep-compare
#SBATCH --array=0-8
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

policies=(float32 mixed_bfloat16 mixed_float16)
policy=${policies[SLURM_ARRAY_TASK_ID / 3]}
seed=$((SLURM_ARRAY_TASK_ID % 3 + 1))
status=0
srun halfstep train "$1" --policy "$policy" --seed "$seed" --resume auto \
  --run-dir "runs/array-$SLURM_ARRAY_JOB_ID/$policy-$seed" || status=$?
if ((status == 75)); then scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"; fi
exit "$status"
