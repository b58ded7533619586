//! Other names of sub-commands: `npm i` is `npm install`.
//!
//! A deny rule matches all names of a sub-command, and those of sub-commands that do the same and more. An allow rule
//! means only the name it has, and for npm and cargo the others of the same sub-command.

use std::borrow::Cow;

use crate::names::Names;

/// Names of the same sub-command, a list for each.
const ALIASES: &[(Names, &[Names])] = &[
    (
        Names("npm"),
        &[
            Names("install i in ins inst insta instal isnt isnta isntal isntall add"),
            Names("uninstall unlink remove rm r un"),
            Names("run run-script rum urn"),
            Names("test t tst"),
            Names("exec x"),
            Names("ci clean-install ic install-clean isntall-clean"),
            Names("install-test it"),
            Names("install-ci-test cit clean-install-test sit"),
            Names("update up u upgrade udpate"),
            Names("link ln"),
            Names("rebuild rb"),
            Names("config c"),
            Names("init create innit"),
            Names("ls list"),
            Names("ll la"),
            Names("view info show v"),
            Names("search find s se"),
            Names("owner author"),
            Names("dedupe ddp"),
            Names("dist-tag dist-tags"),
            Names("adduser add-user"),
            Names("version verison"),
            Names("explain why"),
            Names("docs home"),
            Names("bugs issues"),
        ],
    ),
    (
        Names("pnpm"),
        &[
            Names("install i add"),
            Names("remove rm uninstall un"),
            Names("update up upgrade"),
            Names("install-test it"),
            Names("run run-script"),
            Names("test t tst"),
            Names("link ln"),
            Names("unlink dislink"),
            Names("rebuild rb"),
            Names("list ls"),
            Names("config c"),
        ],
    ),
    (
        Names("yarn"),
        &[
            Names("install i isntall"),
            Names("remove rm un uninstall"),
            Names("upgrade up update"),
            Names("run run-script"),
            Names("test t tst"),
            Names("list ls"),
            Names("link ln"),
        ],
    ),
    (
        Names("cargo"),
        &[
            Names("build b"),
            Names("check c"),
            Names("doc d"),
            Names("run r"),
            Names("test t"),
            Names("remove rm"),
        ],
    ),
    (
        Names("git"),
        &[
            Names("add stage"),
            Names("blame annotate pickaxe"),
            Names("init init-db"),
            Names("fsck fsck-objects"),
            Names("remove rm"),
        ],
    ),
    (
        Names("svn"),
        &[
            Names("blame praise annotate ann"),
            Names("changelist cl"),
            Names("checkout co"),
            Names("commit ci"),
            Names("copy cp"),
            Names("delete del remove rm"),
            Names("diff di"),
            Names("list ls"),
            Names("move mv rename ren"),
            Names("propdel pdel pd"),
            Names("propedit pedit pe"),
            Names("propget pget pg"),
            Names("proplist plist pl"),
            Names("propset pset ps"),
            Names("status stat st"),
            Names("switch sw"),
            Names("update up"),
        ],
    ),
    (
        Names("hg"),
        &[
            Names("annotate blame"),
            Names("commit ci"),
            Names("copy cp"),
            Names("import patch"),
            Names("incoming in"),
            Names("log history"),
            Names("outgoing out"),
            Names("remove rm"),
            Names("rename move mv"),
            Names("status st"),
            Names("update up checkout co"),
        ],
    ),
    (
        Names("jj"),
        &[
            Names("bookmark b"),
            Names("commit ci"),
            Names("describe desc"),
            Names("operation op"),
            Names("status st"),
            Names("delete d"),
            Names("list l"),
        ],
    ),
    (
        Names("cvs"),
        &[
            Names("add ad new"),
            Names("admin adm rcs"),
            Names("annotate ann"),
            Names("checkout co get"),
            Names("commit ci com"),
            Names("diff di dif"),
            Names("export exp ex"),
            Names("history hi his"),
            Names("import im imp"),
            Names("log lo"),
            Names("login logon lgn"),
            Names("ls dir list"),
            Names("rannotate rann ra"),
            Names("rdiff patch pa"),
            Names("release re rel"),
            Names("remove rm delete"),
            Names("rlog rl"),
            Names("rls rdir rlist"),
            Names("rtag rt rfreeze"),
            Names("status st stat"),
            Names("tag ta freeze"),
            Names("update up upd"),
            Names("version ve ver"),
        ],
    ),
    (Names("docker podman nerdctl"), &[Names("rm remove"), Names("ls list")]),
    (
        Names("helm"),
        &[
            Names("uninstall delete del un remove rm"),
            Names("list ls"),
            Names("history hist"),
            Names("dependency dep dependencies"),
            Names("update up"),
        ],
    ),
    (
        Names("kubectl oc"),
        &[
            Names("pods pod po"),
            Names("services service svc"),
            Names("deployments deployment deploy"),
            Names("daemonsets daemonset ds"),
            Names("statefulsets statefulset sts"),
            Names("replicasets replicaset rs"),
            Names("namespaces namespace ns"),
            Names("nodes node no"),
            Names("secrets secret"),
            Names("configmaps configmap cm"),
            Names("serviceaccounts serviceaccount sa"),
            Names("persistentvolumes persistentvolume pv"),
            Names("persistentvolumeclaims persistentvolumeclaim pvc"),
            Names("ingresses ingress ing"),
            Names("jobs job"),
            Names("cronjobs cronjob cj"),
            Names("events event ev"),
            Names("customresourcedefinitions customresourcedefinition crd crds"),
        ],
    ),
    (Names("apt apt-get"), &[Names("dist-upgrade full-upgrade"), Names("autoremove auto-remove")]),
    (
        Names("dnf yum"),
        &[Names("install in"), Names("remove rm erase"), Names("upgrade update up")],
    ),
    (
        Names("zypper"),
        &[
            Names("install in"),
            Names("remove rm"),
            Names("update up"),
            Names("dist-upgrade dup"),
            Names("addrepo ar"),
            Names("removerepo rr"),
        ],
    ),
    (Names("systemctl"), &[Names("try-restart condrestart"), Names("stop condstop")]),
    (Names("gem"), &[Names("install i"), Names("signin login"), Names("signout logout")]),
    (
        Names("bundle"),
        &[
            Names("install i"),
            Names("exec e ex exe"),
            Names("check c"),
            Names("list ls"),
            Names("cache package pack"),
        ],
    ),
    (
        Names("composer"),
        &[
            Names("install i"),
            Names("require r"),
            Names("update u upgrade"),
            Names("remove rm uninstall"),
            Names("run-script run"),
            Names("show info"),
            Names("self-update selfupdate"),
            Names("dump-autoload dumpautoload"),
            Names("clear-cache clearcache cc"),
        ],
    ),
    (Names("conda mamba"), &[Names("remove uninstall"), Names("update upgrade")]),
    (
        Names("brew"),
        &[
            Names("install instal i"),
            Names("uninstall uninstal remove rm"),
            Names("update up"),
            Names("link ln"),
            Names("list ls"),
            Names("info abv"),
            Names("doctor dr"),
        ],
    ),
    (
        Names("gh glab"),
        &[
            Names("create new"),
            Names("list ls"),
            Names("delete remove"),
            Names("extension extensions ext"),
            Names("codespace cs"),
        ],
    ),
];

/// Sub-commands that also do what another one does, each with the names of that one.
const KINDS: &[(Names, Names, &str)] = &[
    (Names("npm"), Names("install-test link"), "install"),
    (Names("npm"), Names("install-ci-test"), "ci"),
    // Without a script of that name, it stops and starts.
    (Names("npm pnpm yarn"), Names("restart"), "start"),
    (Names("npm pnpm yarn"), Names("restart"), "stop"),
    (Names("npm pnpm"), Names("install-test install-ci-test"), "test"),
    (Names("pnpm"), Names("install-test"), "install"),
    (Names("git"), Names("http-push send-pack"), "push"),
    (Names("apt apt-get"), Names("purge"), "remove"),
    (Names("apt apt-get"), Names("reinstall build-dep satisfy"), "install"),
    (Names("dnf yum"), Names("reinstall localinstall groupinstall builddep"), "install"),
    (Names("brew"), Names("reinstall"), "install"),
    (
        Names("systemctl"),
        Names(
            "try-restart reload-or-restart reload-or-try-restart \
             try-reload-or-restart force-reload",
        ),
        "restart",
    ),
    (Names("systemctl"), Names("reenable"), "enable"),
    (
        Names("openssl"),
        Names(
            "aes-128-cbc aes-128-ecb aes-192-cbc aes-192-ecb aes-256-cbc aes-256-ecb aria-128-cbc aria-128-cfb \
             aria-128-cfb1 aria-128-cfb8 aria-128-ctr aria-128-ecb aria-128-ofb aria-192-cbc aria-192-cfb \
             aria-192-cfb1 aria-192-cfb8 aria-192-ctr aria-192-ecb aria-192-ofb aria-256-cbc aria-256-cfb \
             aria-256-cfb1 aria-256-cfb8 aria-256-ctr aria-256-ecb aria-256-ofb base64 bf bf-cbc bf-cfb bf-ecb \
             bf-ofb camellia-128-cbc camellia-128-ecb camellia-192-cbc camellia-192-ecb camellia-256-cbc \
             camellia-256-ecb cast cast-cbc cast5-cbc cast5-cfb cast5-ecb cast5-ofb des des-cbc des-cfb des-ecb \
             des-ede des-ede-cbc des-ede-cfb des-ede-ofb des-ede3 des-ede3-cbc des-ede3-cfb des-ede3-ofb des-ofb \
             des3 desx idea idea-cbc idea-cfb idea-ecb idea-ofb rc2 rc2-40-cbc rc2-64-cbc rc2-cbc rc2-cfb rc2-ecb \
             rc2-ofb rc4 rc4-40 rc5 rc5-cbc rc5-cfb rc5-ecb rc5-ofb seed seed-cbc seed-cfb seed-ecb seed-ofb \
             sm4-cbc sm4-cfb sm4-ctr sm4-ecb sm4-ofb zlib",
        ),
        "enc",
    ),
    (
        Names("openssl"),
        Names(
            "blake2b512 blake2s256 md2 md4 md5 mdc2 ripemd160 rmd160 sha sha1 sha224 sha256 sha3-224 sha3-256 \
             sha3-384 sha3-512 sha384 sha512 sha512-224 sha512-256 shake128 shake256 sm3",
        ),
        "dgst",
    ),
];

/// Sub-commands of package managers without other names, which are not scripts of a project.
const OWN: &[(Names, Names)] = &[
    (
        Names("pnpm yarn"),
        Names(
            "audit bin cache create dedupe dlx exec global help import info init licenses login logout node outdated \
             owner pack patch publish set team unpublish version view whoami why workspace workspaces",
        ),
    ),
    (Names("pnpm"), Names("deploy fetch patch-commit prune recursive root setup store")),
];

/// Programs that accept the beginning of a sub-command's name for the whole.
const ABBREVIATING: Names = Names(
    "npm hg gem bundle composer ip tc bridge rdma devlink bpftool nmcli tmux btrfs mysqladmin darcs fossil quilt \
     stg mtn",
);

/// The name of a sub-command under which the tables know it: `run` for `npm rum`.
pub fn main_name<'a>(program: &str, name: &'a str) -> &'a str {
    let all = ALIASES.iter().filter(|(programs, _)| programs.has(program));
    let same = all.flat_map(|(_, groups)| groups.iter()).find(|same| same.has(name));
    same.and_then(|same| same.iter().next()).unwrap_or(name)
}

/// Whether two words are the same sub-command to an allow rule.
pub fn is_same(program: &str, one: &str, other: &str) -> bool {
    let is_version = |word: &str| Names("-v --version").has(word);
    Names("npm cargo").has(program) && names(program, one).any(|name| name == other)
        || Names("npm node").has(program) && is_version(one) && is_version(other)
}

/// Everything that a word may name as a sub-command, for a rule that has this one.
pub fn all_names(program: &str, given: &str, wanted: &str) -> Vec<String> {
    let given = spelled(program, given);
    // `kubectl delete ns/x`, `kubectl get pods,deployments.apps`
    let is_kubectl = Names("kubectl oc").has(program);
    let parts = given.split(|c| is_kubectl && "/,".contains(c));
    let parts = parts.map(|part| match is_kubectl {
        true => part.split('.').next().unwrap_or(part),
        false => part,
    });
    let mut all = vec![given.to_string()];
    for part in parts {
        all.push(part.to_owned());
        all.extend(names(program, part).map(str::to_owned));
        all.extend(kinds(program, part).map(str::to_owned));
    }
    if ABBREVIATING.has(program) && is_abbreviation(program, wanted, &given) {
        all.push(wanted.to_owned());
    }
    all
}

/// A sub-command as the tables have it. npm turns `installTest` into `install-test`.
fn spelled<'a>(program: &str, given: &'a str) -> Cow<'a, str> {
    if !given.contains(|c: char| c.is_uppercase()) {
        return given.into();
    }
    let dash = if program == "npm" { "-" } else { "" };
    let letters = given.chars().map(|c| match c.is_uppercase() {
        true => format!("{dash}{}", c.to_lowercase()),
        false => c.to_string(),
    });
    letters.collect::<String>().into()
}

/// Whether it is a sub-command in the table.
pub fn is_name(program: &str, word: &str) -> bool {
    let is_own = |(programs, words): &(Names, Names)| programs.has(program) && words.has(word);
    names(program, word).next().is_some() || OWN.iter().any(is_own)
}

/// All names of a sub-command that has several.
pub fn names<'a>(program: &'a str, given: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    let lists = ALIASES.iter().filter(move |(programs, _)| programs.has(program));
    let lists = lists.flat_map(|(_, lists)| lists.iter());
    lists.filter(move |names| names.has(given)).flat_map(|names| names.iter())
}

/// The names of what a sub-command also does.
fn kinds<'a>(program: &'a str, given: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    let rows = KINDS.iter().filter(move |(programs, kinds, _)| {
        programs.has(program)
            && (kinds.has(given) || names(program, given).any(|name| kinds.has(name)))
    });
    rows.flat_map(move |(_, _, kind)| names(program, kind).chain([*kind]))
}

/// All names of the sub-commands that also do what another one does.
fn kinds_of<'a>(program: &'a str, kind: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    let rows = KINDS.iter().filter(move |(programs, _, of)| programs.has(program) && *of == kind);
    let kinds = rows.flat_map(|(_, kinds, _)| kinds.iter());
    kinds.flat_map(move |name| names(program, name).chain([name]))
}

/// Whether a word is the beginning of a name that the pattern means, and not the whole of another.
fn is_abbreviation(program: &str, pattern: &str, given: &str) -> bool {
    let begins = |name: &str| name.starts_with(given);
    let is_whole = names(program, given).next().is_some();
    let meant = names(program, pattern);
    let same = meant.flat_map(|name| kinds_of(program, name).chain([name]));
    let more = kinds_of(program, pattern);
    !given.is_empty() && !is_whole && (begins(pattern) || same.chain(more).any(begins))
}

/// The sub-command that a program runs if it is given none.
pub fn default(program: &str) -> Option<&'static str> {
    match program {
        "yarn" | "bundle" => Some("install"),
        _ => None,
    }
}

/// Words before a sub-command that do not change what it is, with the number of operands they take.
const PREFIXES: &[(Names, Names, usize)] = &[
    (Names("pnpm"), Names("recursive multi m"), 0),
    (Names("yarn"), Names("global npm workspaces foreach"), 0),
    (Names("yarn"), Names("workspace"), 1),
    (Names("composer"), Names("global"), 0),
    (Names("brew"), Names("cask"), 0),
    (Names("git"), Names("subtree"), 0),
];

/// The number of operands of a word such as the `workspace` of `yarn workspace web add`, if it is one.
pub fn operands_of_prefix(program: &str, given: &str) -> Option<usize> {
    let is_row = |row: &&(Names, Names, usize)| row.0.has(program) && row.1.has(given);
    PREFIXES.iter().find(is_row).map(|(_, _, operands)| *operands)
}
