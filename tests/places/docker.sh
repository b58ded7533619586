# Sourced by place.sh: Docker's API in DIR/docker.sock. There is no network for containers, and clients have to say so
# (network mode `none`). gVisor is the runtime `runsc`, where it can be installed.
. "$here/images.sh"
packages=(docker.io containerd runc busybox-static curl)
private=(/etc/docker /run/docker /run/containerd)

start() {
    local runtimes='{}'
    if gvisor; then
        runtimes="{\"runsc\": {\"path\": \"$dir/runsc\"}}"
    fi
    # The default limit of files is one that not every root may set.
    cat >"$dir/daemon.json" <<END
{
    "hosts": ["unix://$dir/docker.sock"],
    "data-root": "$dir/data",
    "exec-root": "$dir/exec",
    "pidfile": "$dir/dockerd.pid",
    "storage-driver": "overlay2",
    "cgroup-parent": "/$name/containers",
    "bridge": "none",
    "iptables": false,
    "ip6tables": false,
    "ip-forward": false,
    "ip-masq": false,
    "default-ulimits": {"nofile": {"Name": "nofile", "Soft": 1024, "Hard": 4096}},
    "runtimes": $runtimes
}
END
    spawn_apart dockerd dockerd --config-file "$dir/daemon.json"
    await answers
    import_images "$dir/docker.sock"
}

import_url() { echo "/images/create?fromSrc=-&repo=localhost/$1&tag=1"; } # NAME

answers() { request "$dir/docker.sock" /_ping; }

settings() {
    echo "DOCKER_HOST=unix://$dir/docker.sock"
    [[ ! -e $dir/runsc ]] || echo "MCPZ_DOCKER_RUNSC=runsc"
    echo "MCPZ_DOCKER_PID=$(cat "$dir/pid")"
}
