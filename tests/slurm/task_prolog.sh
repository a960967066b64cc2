#!/bin/sh
# Run by slurmd before each task of each step: a line for every launch, with the GPUs that SLURM gives it.
echo "$SLURM_JOB_ID ${SLURM_STEP_ID:-batch} $SLURM_PROCID ${SLURM_GPUS_ON_NODE:-0}" >> FOLDER/launches.txt
# The pretend GPUs of all machines have the same names.
echo "export MCGRPO_LOCKS=FOLDER/locks-$SLURMD_NODENAME"
