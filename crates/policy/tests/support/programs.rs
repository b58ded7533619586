//! Checks of what single programs do.

use super::{all_allowed, all_denied, allow, deny};
use mcpz_policy::{Policy, Rule};

/// Every program that a case here names.
pub const PROGRAMS: &str = "apt,apt-get,awk,bat,cargo,cat,clang,cmake,curl,date,dc,diff,docker,dpkg,duckdb,echo,emacs,ex,\
    find,g++,gawk,gcc,gh,git,go,gpg,groff,ip,java,joe,jq,kubectl,less,make,man,mvn,mysql,nano,nproc,npm,openssl,\
    pandoc,patch,pip,printf,prove,psql,qemu-img,service,python3,rg,rsync,rustc,rustup,screen,sed,sort,ssh,sqlite3,strace,svn,systemctl,tar,\
    tmux,unzip,uptime,vim,wget,xxd,zip";

/// Both kinds of policies refuse it: one that denies `evil`, and one that allows everything else here.
pub fn runs_evil(commands: &[&str]) {
    all_denied(&deny("evil"), commands);
    all_denied(&allow(PROGRAMS), commands);
}

/// Both kinds of policies let it through.
pub fn is_honest(commands: &[&str]) {
    all_allowed(&deny("evil"), commands);
    all_allowed(&allow(PROGRAMS), commands);
}

pub fn writes_elsewhere(commands: &[&str]) {
    for command in commands {
        let name = command.split_whitespace().find(|word| !word.contains('=')).unwrap();
        let allow = Rule::list(name).unwrap();
        let write_dirs = vec!["/srv/proj".to_owned()];
        all_denied(&Policy { allow, write_dirs, ..Policy::default() }, &[command]);
    }
}
