# Sourced by place.sh: podman's API in DIR/podman.sock.
#
# Its API does not let clients choose a runtime. So there is a second service for gVisor, in DIR/runsc.sock, where gVisor
# can be installed. Both have the same images and containers.
. "$here/images.sh"
packages=(podman runc busybox-static curl)
private=(/var/lib/containers)

start() {
    # Runc, because crun refuses cgroups of both versions at once. Podman's own limits of files and processes are
    # higher than some root users may set. Locks in shared memory would be shared by all places.
    cat >"$dir/containers.conf" <<END
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "none"
http_proxy = false
log_driver = "k8s-file"
[network]
network_config_dir = "$dir/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
static_dir = "$dir/graph/libpod"
volume_path = "$dir/graph/volumes"
tmp_dir = "$dir/run/libpod"
image_copy_tmp_dir = "$dir/tmp"
[engine.runtimes]
runc = ["$dir/runc"]
runsc = ["$dir/runsc"]
END
    cat >"$dir/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$dir/graph"
runroot = "$dir/run"
END
    runtime runc
    local conf=(env CONTAINERS_CONF="$dir/containers.conf" CONTAINERS_STORAGE_CONF="$dir/storage.conf")
    spawn_apart podman "${conf[@]}" podman system service --time 0 "unix://$dir/podman.sock"
    await request "$dir/podman.sock" /_ping
    import_images "$dir/podman.sock"
    if gvisor; then
        spawn runsc nsenter --target "$(cat "$dir/pid")" --pid --mount \
            "${conf[@]}" podman --runtime runsc system service --time 0 "unix://$dir/runsc.sock"
        await request "$dir/runsc.sock" /_ping
    fi
}

import_url() { echo "/v4.0.0/libpod/images/import?reference=localhost/$1:1"; } # NAME

answers() {
    request "$dir/podman.sock" /_ping && { [[ ! -e $dir/runsc ]] || request "$dir/runsc.sock" /_ping; }
}

settings() {
    echo "CONTAINER_HOST=unix://$dir/podman.sock"
    [[ ! -e $dir/runsc ]] || echo "MCPZ_PODMAN_RUNSC=unix://$dir/runsc.sock"
    echo "MCPZ_PODMAN_PID=$(cat "$dir/pid")"
}

# Podman keeps the cgroups of all places in one.
leave() {
    local container top
    for container in "$dir"/graph/overlay-containers/*/; do
        remove_cgroups "libpod_parent/libpod-$(basename "$container")"
    done
    for top in /sys/fs/cgroup{,/*}/libpod_parent; do
        rmdir "$top"/{conmon,} 2>/dev/null || :
    done
}
