# Sourced by place.sh: a Slurm cluster of one node, on which jobs share the processors.
#
#     SLURM_CONF=DIR/slurm.conf srun -n1 hostname
packages=(slurmctld slurmd slurm-client munge)

start() {
    local port
    free_ports
    mkdir "$dir"/{munge,state,spool}
    cat >"$dir/slurm.conf" <<END
ClusterName=places
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PropagateResourceLimits=NONE
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$(nproc)
PartitionName=p Nodes=n1 Default=YES MaxTime=INFINITE OverSubscribe=FORCE:32
END
    head -c 1024 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    spawn start munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
        --pid-file="$dir/munge/pid" --log-file="$dir/log/munged" --seed-file="$dir/munge/seed"
    await munge -n -S "$dir/munge/socket"
    # They listen on the address of the machine's name, whatever their settings say.
    local as_localhost=(unshare --uts sh -c 'hostname localhost && exec "$@"' -)
    spawn start "${as_localhost[@]}" slurmctld -D -f "$dir/slurm.conf"
    echo "MCPZ_SLURMCTLD_PID=$!" >"$dir/pids"
    await listens "$port"
    spawn start "${as_localhost[@]}" slurmd -D -f "$dir/slurm.conf" -N n1
    echo "MCPZ_SLURMD_PID=$!" >>"$dir/pids"
    await listens $((port + 1))
    await answers
}

# Without a controller, sinfo would try for ten seconds.
answers() { SLURM_CONF=$dir/slurm.conf timeout 2 sinfo -h -t idle,mixed,allocated -o %T | grep .; }

settings() {
    echo "SLURM_CONF=$dir/slurm.conf"
    cat "$dir/pids"
}
