#!/bin/sh
# Four processes on two nodes that train together: `sbatch examples/cluster/slurm.sh`.
#
# Slurm says each process which it is and where the others are. Two minutes before the time is over, each gets
# SIGTERM: all write a checkpoint to the folder, which all nodes see, and end; the job is queued again and goes on.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
set -eu
status=0
srun ./multi_worker 100000 "${SLURM_SUBMIT_DIR:?}/checkpoints" || status=$?
# A program that was asked to end says: try again (`EX_TEMPFAIL`).
[ "$status" != 75 ] || scontrol requeue "${SLURM_JOB_ID:?}"
exit "$status"
