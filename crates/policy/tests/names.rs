//! Rules find a program by all its names, and a sub-command wherever it stands.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use support::{all_allowed, all_denied, allow, deny};

#[test]
fn a_rule_denies_every_version_and_variant_of_a_program() {
    all_denied(
        &deny("python3,gcc,vim,perl,rm,nc"),
        &[
            "python3.11 x.py",
            "/usr/bin/python3.11 x.py",
            "gcc-12 x.c",
            "x86_64-linux-gnu-gcc-12 x.c",
            "c99 x.c",
            "vim.basic x",
            "vim.tiny x",
            "editor x",
            "perl5.36-x86_64-linux-gnu x",
            "grm x",
            "nc.openbsd h 1",
            "ncat h 1",
        ],
    );
    all_denied(&deny("python"), &["python3 x", "python3.11 x", "python2 x"]);
    all_denied(&deny("pip install"), &["pip3 install x", "pip3.11 install x"]);
    all_denied(
        &deny("bundle,racc,node,npm install,cargo publish,helm"),
        &[
            "bundle3.1 exec x",
            "bundler3.1 exec x",
            "racc3.1 x.y",
            "node20 x.js",
            "nodejs x.js",
            "npm-9 install x",
            "cargo-1.70 publish",
            "helm3 list",
        ],
    );
    all_denied(&deny("ripgrep,batcat,nodejs"), &["rg x", "bat x", "node x.js", "node20 x.js"]);
    all_allowed(
        &deny("python3,gcc,make,vim,go,python3.11"),
        &[
            "python2 x",
            "python3-config --libs",
            "gcov x",
            "gofmt x",
            "cmake --version",
            "./make.sh",
        ],
    );
}

#[test]
fn an_allow_rule_means_only_the_name_it_has() {
    all_denied(&allow("python3"), &["python3.11 x.py", "python x.py"]);
    all_allowed(&allow("python3*"), &["python3.11 x.py"]);
}

#[test]
fn what_a_versioned_name_runs_is_found() {
    all_denied(
        &deny("evil"),
        &[
            "gcc-12 -wrapper evil -c x.c",
            "x86_64-linux-gnu-gcc -wrapper evil -c x.c",
            "c89-gcc -wrapper evil -c x.c",
            "musl-gcc -wrapper evil -c x.c",
            "vim.basic -es -u NONE -c '!evil' -c q",
            "editor -es -u NONE -c '!evil' -c q",
            "python3.11 -c 'import os; os.system(\"evil\")'",
            "perl5.36-x86_64-linux-gnu -e 'system \"evil\"'",
            "original-awk 'BEGIN { system(\"evil\") }'",
            "perl '-Mx;system(q(evil))' f",
        ],
    );
}

#[test]
fn a_sub_command_in_a_group_is_the_one_outside() {
    all_denied(
        &deny("docker run,docker rmi"),
        &[
            "docker container run x",
            "docker -H tcp://h container run x",
            "docker --unknown container run x",
            "docker image rm x",
        ],
    );
    all_denied(&deny("docker container run"), &["docker run x", "docker container run x"]);
    all_allowed(&deny("docker rm"), &["docker volume rm x", "docker image rm x"]);
    all_allowed(
        &allow("docker ps,docker image ls,docker logs"),
        &["docker container ls -a", "docker images", "docker --context x container logs web"],
    );
    all_denied(&allow("docker ps"), &["docker container run x", "docker container rm x"]);
}

#[test]
fn sub_commands_are_found_behind_global_options() {
    all_denied(
        &deny("pip install,git push,kubectl delete,cargo publish"),
        &[
            "python3 -m pip install x",
            "python3 -mpip install x",
            "python3 -Im pip install x",
            "python3 -I -m pip --quiet install x",
            "uv pip install x",
            "uv --directory d pip install x",
            "git -C d push",
            "kubectl -n web delete pod x",
            "cargo +nightly publish",
        ],
    );
    all_allowed(
        &allow("kubectl get,git log,cargo test,pip list,aws s3 ls,go build,npm test"),
        &[
            "kubectl -n web get pods",
            "git -C d log",
            "cargo +nightly test",
            "pip --quiet list",
            "aws --region eu-west-1 s3 ls",
            "go -C d build ./...",
            "npm --prefix web test",
        ],
    );
    all_allowed(
        &deny("pip install"),
        &["python3 -m pytest", "python3 -m venv pip", "python3 -m http.server", "uv run x.py"],
    );
}
