# Sourced by place.sh: an sshd that lets the owner of DIR/key in as root. Sessions see the machine as it is.
#
#     ssh -F DIR/config place
# The last two are for tests that cut the network.
packages=(openssh-server openssh-client iproute2 iptables)

start() {
    local port
    free_ports
    mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/host"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/key"
    echo "[127.0.0.1]:$port $(cat "$dir/host.pub")" >"$dir/known_hosts"
    # By default, sshd drops connections when ten at a time have not logged in yet. SHLVL keeps bash from reading
    # root's .bashrc, which may be slow or print something. What is copied there goes with the place.
    cat >"$dir/sshd_config" <<END
ListenAddress 127.0.0.1:$port
HostKey $dir/host
AuthorizedKeysFile $dir/key.pub
StrictModes no
PidFile none
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 1000
MaxSessions 100
SetEnv SHLVL=1 XDG_CACHE_HOME=$dir/cache
Subsystem sftp internal-sftp
END
    cat >"$dir/config" <<END
Host place
  HostName 127.0.0.1
  Port $port
  User root
  IdentityFile $dir/key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $dir/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
END
    spawn sshd "$(command -v sshd)" -D -e -f "$dir/sshd_config"
    echo $! >"$dir/pid"
    await answers
}

answers() { timeout 5 ssh -F "$dir/config" place true; }

settings() {
    echo "MCPZ_SSH_CONFIG=$dir/config"
    echo "MCPZ_SSHD_PID=$(cat "$dir/pid")"
}
