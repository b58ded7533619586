# Sourced by podman.sh, docker.sh and kubernetes.sh: what container engines need. Images need no registry:
#
#     localhost/mcpz-test:1      /busybox and little else: with the machine's /usr mounted, a complete system;
#                                users root and dev
#     localhost/mcpz-busybox:1   busybox and its links in /bin, and nothing else
test_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Makes what is in the images, in DIR/tmp/root and DIR/tmp/busybox.
image_roots() {
    local root=$dir/tmp/root
    mkdir -p "$root"/{proc,sys,dev,tmp,run,etc,usr,var,home/dev,root,work}
    chmod 1777 "$root/tmp"
    chmod 700 "$root/root"
    chown 1000:1000 "$root/home/dev"
    ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root"
    cp /bin/busybox "$root/busybox"
    printf '%s\n' root:x:0:0:root:/root:/bin/sh dev:x:1000:1000:dev:/home/dev:/bin/sh >"$root/etc/passwd"
    printf '%s\n' root:x:0: dev:x:1000: >"$root/etc/group"

    root=$dir/tmp/busybox
    mkdir -p "$root/bin"
    cp /bin/busybox "$root/bin/busybox"
    /bin/busybox --list | grep -vx busybox | xargs -I{} ln -s busybox "$root/bin/{}"
}

import_images() { # SOCKET
    image_roots
    import_image "$1" "$dir/tmp/root" mcpz-test "$test_path"
    import_image "$1" "$dir/tmp/busybox" mcpz-busybox /bin
    rm -r "$dir"/tmp/{root,busybox}
}

# Prints an image as `docker save` would. Run as it is, it does nothing for a long time.
archive_image() { # NAME ROOT PATH
    local folder=$dir/tmp/archive
    mkdir "$folder"
    tar -C "$2" -cf "$folder/layer.tar" .
    cat >"$folder/config.json" <<END
{"architecture": "$(architecture)", "os": "linux", "config": {"Env": ["PATH=$3"], "Cmd": ["busybox", "sleep", "1000000000"]},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum <"$folder/layer.tar" | head -c 64)"]}}
END
    echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"localhost/$1:1\"], \"Layers\": [\"layer.tar\"]}]" \
        >"$folder/manifest.json"
    tar -C "$folder" -c .
    rm -r "$folder"
}

architecture() { dpkg --print-architecture; }

import_image() { # SOCKET ROOT NAME PATH
    tar -C "$2" -c . |
        request "$1" "$(import_url "$3")&changes=ENV%20PATH=$4" -X POST -T - -H 'Content-Type: application/x-tar' \
            >>"$dir/log/import"
    request "$1" "/images/localhost/$3:1/json" >>"$dir/log/import"
}

request() { # SOCKET PATH OPTION…
    curl -sS --fail-with-body --max-time 20 --noproxy '*' --unix-socket "$1" "http://place$2" "${@:3}"
}

# Makes gVisor a runtime that needs no network and no cgroups. Fails if gVisor cannot be installed.
gvisor() {
    has_gvisor && runtime runsc --network=none --ignore-cgroups
}

# Installs gVisor if it can be, and is not there.
has_gvisor() {
    [[ ! $(missing runsc) ]] || { apt-cache show runsc &>/dev/null && install_missing runsc >&2; }
}

# Writes a script DIR/NAME that keeps the runtime's files in DIR, unless the engine has a folder for them.
runtime() { # NAME OPTION…
    printf '#!/bin/sh\nexec %s "$@"\n' "$* --root $dir/$1-state" >"$dir/$1"
    chmod 755 "$dir/$1"
}
