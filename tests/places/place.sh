# Sourced by `up` and `down`: a place is one engine in one scratch folder.
#
#     DIR/place-ENGINE   an empty file; no folder without it is ever emptied or removed
#     DIR/env            what a test exports, once the engine answers
#     DIR/log/           what the daemons said
#
# All daemons of a place are in a cgroup that is named after the folder, with everything they start: so all of it
# can be found and ended, even if the daemons are gone. Container engines move containers to other cgroups, so they
# also have a PID and a mount namespace. Containers and mounts end with the first process there.
case $#:${1:-} in
2:podman | 2:docker | 2:kubernetes | 2:sshd | 2:slurm) ;;
*) echo "usage: $0 podman|docker|kubernetes|sshd|slurm DIR" >&2 && exit 2 ;;
esac
engine=$1
dir=$(realpath -m "$2")
# Slurm's settings know no quotes, and the path of a socket has 107 bytes at most.
[[ $dir =~ ^/[[:alnum:]/._+-]{1,63}$ ]] || { echo "$dir: too long, or has special characters" >&2 && exit 2; }
# Not mcpz-…: cgroups with that prefix are those of the program itself.
name=place-$engine-$(sha256sum <<<"$dir" | head -c 12)
cgroup=$(findmnt --first-only -nt cgroup2 -o TARGET)/$name || { echo "cgroup version 2 is not mounted" >&2 && exit 2; }
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
umask 022

# Waits until no other `up` or `down` works on this folder. While one waits, another may replace the folder.
lock() {
    while
        mkdir -p "$dir"
        exec 8<"$dir"
        flock 8
        [[ ! $dir -ef /dev/fd/8 ]]
    do :; done
    if [[ ! -f $dir/place-$engine && $(ls -A "$dir") ]]; then
        echo "$dir: has files, but not of $engine" >&2 && exit 2
    fi
}

# Runs a daemon with none of our settings and none of our files.
spawn() { # LOG COMMAND…
    (
        echo "$BASHPID" >"$cgroup/daemons/cgroup.procs"
        cd "$dir" || exit
        exec setsid env -i PATH="$PATH" HOME="$dir" TMPDIR="$dir/tmp" LC_ALL=C.UTF-8 "${@:2}" \
            </dev/null &>>"$dir/log/$1" 8<&- 9<&-
    ) &
}

# Folders that the engine writes to whatever its settings say.
private=()

# More namespaces that the engine has.
apart=()

# As spawn, in namespaces of its own, where the private folders are empty. Writes the daemon's process ID to DIR/pid.
# The first process there stays when the daemon ends, as on a machine: containers outlive their engine.
spawn_apart() { # LOG COMMAND…
    # They stay: to remove a folder would unmount it in other places.
    mkdir -p "${private[@]}"
    # /proc is still the machine's where the ID is read.
    spawn "$1" unshare --pid --fork --mount "${apart[@]}" --propagation slave bash -ec '
        (
            read -r pid _ </proc/self/stat
            echo "$pid" >pid
            mount -t proc proc /proc
            for folder in $0; do mount -t tmpfs tmpfs "$folder"; done
            exec "$@"
        ) &
        sleep infinity &
        wait' "${private[*]}" "${@:2}"
}

# Finds two ports in a row on which nothing listens, below those that the kernel gives to clients. No other place can
# choose them until we end, and then the daemons have them.
free_ports() {
    exec 9</run/lock
    flock 9
    while
        port=$((20000 + SRANDOM % 12000))
        listens "$port" || listens $((port + 1))
    do :; done
}

listens() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # PORT

# Waits until a command succeeds, for 20 seconds at most, or AWAIT_SECONDS.
await() { # COMMAND…
    local end=$((SECONDS + ${AWAIT_SECONDS:-20}))
    until "$@" &>/dev/null; do
        if ((SECONDS >= end)); then
            echo "$engine in $dir is not ready: $*" >&2
            tail -n 50 "$dir"/log/* >&2
            exit 1
        fi
        sleep 0.05
    done
}

# Ends all processes of the place, and removes their cgroups.
end_place() {
    [[ ! -d $cgroup ]] || echo 1 >"$cgroup/cgroup.kill"
    remove_cgroups "$name"
    leave
}

# Removes a cgroup from all hierarchies: the only one, or those of version 1 and the one beside them. The processes in
# it have been killed, but may not be gone yet.
remove_cgroups() { # NAME
    local folder
    for folder in /sys/fs/cgroup{,/*}/"$1"; do
        await remove_cgroup "$folder"
    done
}

remove_cgroup() { [[ ! -d $1 ]] || find "$1" -depth -type d -exec rmdir {} +; } # FOLDER

# What else the engine leaves behind.
leave() { :; }

. "$here/$engine.sh"
