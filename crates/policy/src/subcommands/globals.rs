//! The options that programs accept before their sub-commands.
//!
//! Each row is about programs that agree on all its options: with a value too many or too few, a denied sub-command
//! would count as a value, or as an operand. An option that no row has is read both ways, so leave out what is unsure.

use crate::names::Names;

pub struct GlobalOptions {
    pub programs: Names,
    pub valued: Names,
    pub flags: Names,
}

pub const GLOBALS: &[GlobalOptions] = &[
    GlobalOptions {
        programs: Names("git"),
        valued: Names(
            "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        ),
        flags: Names(
            "-p -P -h -v --paginate --no-pager --bare --help --version --literal-pathspecs \
             --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path \
             --info-path",
        ),
    },
    // `-j` takes the next word only if that is a number.
    GlobalOptions {
        programs: Names("make gmake"),
        valued: Names("-C --directory"),
        flags: Names(
            "-s -k -n -B -i -w -r -R --silent --quiet --keep-going --dry-run --just-print --always-make \
             --ignore-errors --print-directory --no-print-directory",
        ),
    },
    GlobalOptions {
        programs: Names("docker"),
        valued: Names(
            "-c -H -l --config --context --host --log-level --tlscacert --tlscert --tlskey",
        ),
        flags: Names("-D -h -v --debug --tls --tlsverify --version --help"),
    },
    GlobalOptions {
        programs: Names("podman nerdctl"),
        valued: Names("-c -H --context --host --log-level"),
        flags: Names("-h -v --debug --version --help"),
    },
    GlobalOptions {
        programs: Names("kubectl oc"),
        valued: Names(
            "-n -s -v --namespace --context --cluster --kubeconfig --user --server --token --as \
             --as-group --request-timeout --cache-dir",
        ),
        flags: Names("-h --help --insecure-skip-tls-verify --match-server-version"),
    },
    GlobalOptions {
        programs: Names("helm"),
        valued: Names(
            "-n --namespace --kube-context --kubeconfig --kube-token --kube-apiserver \
             --kube-as-user --registry-config --repository-config --repository-cache",
        ),
        flags: Names("-h --help --debug --kube-insecure-skip-tls-verify"),
    },
    GlobalOptions {
        programs: Names("npm"),
        valued: Names(
            "-C -w -L -m --prefix --workspace --registry --reg --loglevel --cache --tag --otp \
             --userconfig --globalconfig --scope --access --include --omit --depth --location",
        ),
        flags: Names(
            "-s -q -d -dd -ddd -f -g -l -y -v -h -S -D -E -O -P --silent --quiet --verbose \
             --force --global --json --long --parseable --yes --version --help --workspaces -ws \
             --offline --dry-run --if-present --ignore-scripts --save --save-dev --save-exact \
             --production --audit --fund --progress --legacy-peer-deps --prefer-offline",
        ),
    },
    GlobalOptions {
        programs: Names("npx"),
        valued: Names(
            "-p -c -C -w -L -m --package --call --prefix --workspace --registry --loglevel --cache \
             --userconfig --globalconfig",
        ),
        flags: Names(
            "-s -q -d -dd -ddd -f -l -y -v -h --silent --quiet --verbose --force --json --yes \
             --version --help --workspaces -ws --offline --ignore-scripts --prefer-offline",
        ),
    },
    GlobalOptions {
        programs: Names("pnpm"),
        valued: Names("-C -F --dir --filter --filter-prod --loglevel --reporter --registry"),
        flags: Names(
            "-r -w -s -h -v -g --recursive --workspace-root --silent --help --version --global \
             --offline --prefer-offline --stream --aggregate-output --parallel --if-present",
        ),
    },
    GlobalOptions {
        programs: Names("yarn"),
        valued: Names("--cwd --registry --cache-folder --modules-folder --mutex"),
        flags: Names(
            "-s -v -h --silent --verbose --version --help --json --offline --frozen-lockfile \
             --immutable --ignore-scripts --ignore-engines --production --pure-lockfile",
        ),
    },
    GlobalOptions {
        programs: Names("cargo"),
        valued: Names("--color --config -Z -C --manifest-path --target-dir"),
        flags: Names(
            "-v -vv -q -V -h --verbose --quiet --locked --offline --frozen --version --help \
             --list",
        ),
    },
    GlobalOptions {
        programs: Names("systemctl journalctl"),
        valued: Names(
            "-H -M -t -p -P -o -n -s -u --root --host --machine --type --state --property \
             --output --lines --signal --job-mode",
        ),
        flags: Names(
            "-q -a -l -f -i -r --user --system --global --no-pager --no-ask-password --quiet \
             --now --all --full --force --failed --plain --value --wait --runtime --no-block",
        ),
    },
    GlobalOptions {
        programs: Names("gh glab"),
        valued: Names("-R --repo --hostname"),
        flags: Names("--help --version"),
    },
    GlobalOptions {
        programs: Names("aws"),
        valued: Names(
            "--region --profile --output --color --query --endpoint-url --ca-bundle \
             --cli-read-timeout --cli-connect-timeout --cli-binary-format",
        ),
        flags: Names("--debug --no-cli-pager --no-paginate --no-verify-ssl --no-sign-request"),
    },
    GlobalOptions {
        programs: Names("gcloud"),
        valued: Names("--project --account --format --verbosity --region --zone"),
        flags: Names("--quiet -q"),
    },
    GlobalOptions {
        programs: Names("pip"),
        valued: Names(
            "--proxy --retries --timeout --cache-dir --log --cert --client-cert --python \
             --trusted-host --keyring-provider --exists-action",
        ),
        flags: Names(
            "-q -qq -v -vv --quiet --verbose --isolated --no-input --no-color --require-virtualenv \
             --disable-pip-version-check --version -V --help -h",
        ),
    },
    GlobalOptions {
        programs: Names("uv"),
        valued: Names("--directory --project --color --config-file --cache-dir"),
        flags: Names("-q -v -n -h -V --quiet --verbose --offline --native-tls --help --version"),
    },
    GlobalOptions {
        programs: Names("poetry"),
        valued: Names("-C -P --directory --project"),
        flags: Names(
            "-q -v -vv -vvv -n -h -V --quiet --verbose --no-interaction --ansi --no-ansi --help \
             --version",
        ),
    },
    GlobalOptions { programs: Names("go"), valued: Names("-C"), flags: Names("") },
    GlobalOptions {
        programs: Names("terraform tofu"),
        valued: Names(""),
        flags: Names("-help -version"),
    },
    GlobalOptions {
        programs: Names("svn"),
        valued: Names(
            "-r -m -F -c --username --password --config-dir --config-option --revision --message \
             --file --depth",
        ),
        flags: Names("-q -v -R -N --quiet --verbose --non-interactive --force --no-auth-cache"),
    },
    GlobalOptions {
        programs: Names("cvs"),
        valued: Names("-d -e -s -T -z --allow-root"),
        flags: Names("-Q -q -r -w -l -n -t -v -f -H --help --version"),
    },
    GlobalOptions {
        programs: Names("hg"),
        valued: Names("-R --repository --cwd --config --encoding --color --pager"),
        flags: Names("-q -v -y -h --quiet --verbose --noninteractive --debug --traceback --help"),
    },
    GlobalOptions {
        programs: Names("jj"),
        valued: Names("-R --repository --at-operation --at-op --config --config-file --color"),
        flags: Names("-h -V --quiet --debug --no-pager --ignore-working-copy --help --version"),
    },
    GlobalOptions {
        programs: Names("brew"),
        valued: Names(""),
        flags: Names("-d -q -v -h --debug --quiet --verbose --help"),
    },
    GlobalOptions {
        programs: Names("dotnet"),
        valued: Names(
            "--fx-version --roll-forward --additionalprobingpath --additional-deps --depsfile \
             --runtimeconfig",
        ),
        flags: Names("-d -h --diagnostics --help --info --version"),
    },
    GlobalOptions {
        programs: Names("rustup"),
        valued: Names(""),
        flags: Names("-q -v -h -V --quiet --verbose --help --version"),
    },
    GlobalOptions {
        programs: Names("composer"),
        valued: Names("-d --working-dir"),
        flags: Names(
            "-q -v -vv -vvv -n -h -V --quiet --verbose --no-interaction --ansi --no-ansi \
             --profile --no-plugins --no-scripts --no-cache --help --version",
        ),
    },
    GlobalOptions {
        programs: Names("bundle"),
        valued: Names("-r --retry"),
        flags: Names("-V --verbose --no-color"),
    },
    GlobalOptions {
        programs: Names("gem conda mamba"),
        valued: Names(""),
        flags: Names("-q -h --quiet --verbose --help --version --debug"),
    },
    GlobalOptions {
        programs: Names("apt apt-get"),
        valued: Names("-o -c -t --option --config-file --target-release"),
        flags: Names("-y -q -qq --yes --quiet -s --simulate --no-install-recommends"),
    },
];
