# Sourced by place.sh: a Kubernetes cluster of one node, with network, process and mount namespaces of its own.
#
#     kubectl --kubeconfig DIR/admin get pods
#
# DIR/user is a kubeconfig of a user without any role. The RuntimeClass `gvisor` is there if runsc can be installed.
# Without a controller manager there are no deployments, no default service accounts and no removal of what belongs to
# something that was removed.
. "$here/images.sh"
packages=(etcd-server containerd runc containernetworking-plugins busybox-static curl openssl iproute2 iptables)
private=(/etc/cni /run/containerd /run/runc /var/lib/cni /var/lib/kubelet /var/log/pods /var/log/containers)
apart=(--net)
programs=${XDG_CACHE_HOME:-$HOME/.cache}/mcpz-test/kubernetes

start() {
    "$here/kubernetes/build" "$programs" >&2
    mkdir "$dir"/{etcd,certificates,containerd,kubelet,network,images}
    address=$(free_address)
    openssl genrsa -out "$dir/accounts.key" 2048 2>/dev/null
    openssl rsa -in "$dir/accounts.key" -pubout -out "$dir/accounts.pub" 2>/dev/null
    printf '%s\n' admin-token,admin,1,system:masters user-token,user,2, >"$dir/tokens"
    image_roots
    archive_image mcpz-test "$dir/tmp/root" "$test_path" >"$dir/images/mcpz-test.tar"
    archive_image mcpz-busybox "$dir/tmp/busybox" /bin >"$dir/images/mcpz-busybox.tar"
    archive_image pause "$dir/tmp/busybox" /bin >"$dir/images/pause.tar"
    rm -r "$dir"/tmp/{root,busybox}
    spawn_apart kubernetes bash -eu "$here/kubernetes/node" "$dir" "$programs" "$address"
    await test -s "$dir/pid"
    connect
    AWAIT_SECONDS=90 await answers
    kubeconfig admin
    kubeconfig user
    ! has_gvisor || runtime_class gvisor runsc
}

runtime_class() { # NAME HANDLER
    curl -sSkf --max-time 20 --noproxy '*' -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' \
        -d "{\"metadata\": {\"name\": \"$1\"}, \"handler\": \"$2\"}" \
        "https://$address:6443/apis/node.k8s.io/v1/runtimeclasses" >>"$dir/log/runtime-class"
}

# Addresses for measurements between networks, which nobody else uses: a pair of them, of which this is the second.
free_address() {
    local number
    number=$((0x$(sha256sum <<<"$dir" | head -c 4) & ~3))
    while ip -o addr show | grep -q " 198\.$((18 + number / 65536))\.$((number / 256 % 256))\.$((number % 256 + 1))/"; do
        number=$(((number + 4) % 131072))
    done
    echo "198.$((18 + number / 65536)).$((number / 256 % 256)).$((number % 256 + 2))"
}

# Connects the network namespace of the node with this one. The connection ends with the namespace.
connect() {
    local node link=place-$(head -c 8 <<<"${name##*-}")
    node=$(cat "$dir/pid")
    await in_node "$node"
    ip link delete "$link" 2>/dev/null || :
    ip link add "$link" type veth peer name machine netns "$node"
    ip addr add "${address%.*}.$((${address##*.} - 1))/30" dev "$link"
    ip link set "$link" up
    nsenter --target "$node" --net sh -ec "ip link set lo up; ip addr add $address/30 dev machine; ip link set machine up"
}

in_node() { [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]; } # PID

kubeconfig() { # USER
    cat >"$dir/$1" <<END
apiVersion: v1
kind: Config
clusters: [{name: place, cluster: {server: "https://$address:6443", certificate-authority: "$dir/certificates/apiserver.crt"}}]
users: [{name: $1, user: {token: $1-token}}]
contexts: [{name: place, context: {cluster: place, user: $1, namespace: default}}]
current-context: place
END
}

answers() {
    local address=${address:-$(sed -n 's|.*https://\([0-9.]*\):.*|\1|p' "$dir/admin")}
    curl -skf --max-time 5 --noproxy '*' -H 'Authorization: Bearer admin-token' \
        "https://$address:6443/api/v1/nodes/node" | grep -q '"reason": "KubeletReady"'
}

# The process ID of a daemon, as this machine counts.
daemon() { # NAME
    local pid
    while read -r pid; do
        [[ $(cat "/proc/$pid/comm") != "$1" ]] || echo "$pid"
    done <"$cgroup/daemons/cgroup.procs"
}

settings() {
    echo "KUBECONFIG=$dir/admin"
    echo "MCPZ_KUBERNETES_SERVER=https://$address:6443"
    echo "MCPZ_KUBERNETES_USER=$dir/user"
    echo "MCPZ_KUBERNETES_APISERVER_PID=$(daemon kube-apiserver)"
    echo "MCPZ_KUBERNETES_KUBELET_PID=$(daemon kubelet)"
}

# Containerd keeps the cgroups of all places in one.
leave() {
    local container top
    for container in "$dir"/containerd/state/io.containerd.runtime.v2.task/k8s.io/*/; do
        remove_cgroups "k8s.io/$(basename "$container")"
    done
    for top in /sys/fs/cgroup{,/*}/k8s.io; do
        rmdir "$top" 2>/dev/null || :
    done
}
