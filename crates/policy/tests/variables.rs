//! Variables that commands set where an allow list has rules for programs that run what they are told.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use support::{all_allowed, all_denied, allow, deny};

#[test]
fn under_a_rule_for_one_use_of_a_runner_they_are_switches() {
    for rule in ["npm test", "npm run *", "just test", "/^make test$/", "make* test", "tox -e py"] {
        let policy = allow(&format!("{rule},export"));
        all_allowed(
            &policy,
            &["CI=1 true", "export NODE_ENV=test", "LANG=C.UTF-8 true", "TZ=Europe/Paris true"],
        );
        all_denied(
            &policy,
            &[
                "PORT=';pwned' true",
                "PORT='`pwned`' true",
                "API_URL='x;pwned' true",
                "APP_ENV='. -exec pwned {} +' true",
                "LANG=$(cat v) true",
                "TMPDIR=/tmp/x true",
                "DATABASE_URL=pg://host/x true",
                "LANG=pwned true",
                "CI=pwned true",
                "TEST_ENV=pwned true",
                "NODE_ENV=../../../dev/stdin true",
                "TOX_CONFIG_FILE=x://../../dev/stdin true",
                "JUST_JUSTFILE=3 true",
                "https_proxy=http://evil true",
                "MVNW_REPOURL=http://evil true",
                "export LANG=';pwned;'",
            ],
        );
    }
    for rule in ["mvn test", "mvn *", "./gradlew *"] {
        let policy = allow(rule);
        all_denied(
            &policy,
            &[
                "MAVEN_OPTS=@/dev/stdin true",
                "MAVEN_OPTS=/srv/A.java true",
                "GRADLE_OPTS='$(pwned)' true",
                "JAVA_OPTS=\"-X''runjdwp:launch=pwned\" true",
            ],
        );
    }
    let sources = ["npm_config_registry=http://x/ true", "PIP_INDEX_URL=http://x/ true"];
    all_denied(&allow("npx cowsay,pip download"), &sources);
    all_allowed(&deny("rm"), &sources);
}

/// What a pattern of paths allows runs nothing else, and a whole program does as it is told anyway.
#[test]
fn under_other_rules_they_may_have_any_harmless_value() {
    for rule in ["ls*", "./scripts/*", "./scripts/* log", "/usr/bin/*"] {
        let policy = allow(&format!("{rule},ls"));
        all_allowed(&policy, &["RETRIES=3 ls", "DATABASE_URL=postgres://db/x ls"]);
        all_denied(
            &policy,
            &["PAGER=pwned ls", "SOME=thing ls", "GSS_MECH_CONFIG=1 ls", "TC_LIB_DIR=1 ls"],
        );
    }
}
