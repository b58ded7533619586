//! Rules about sub-commands, in all spellings of them.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Scene, Verdict};
use support::{all_allowed, all_denied, allow, deny, refusal};

#[test]
fn a_sub_command_has_aliases() {
    for (rule, others) in [
        (
            "npm install",
            "i in ins insta isnt isntall add it install-test installTest link ln isnta",
        ),
        ("npm uninstall", "un rm r remove unlink uninst"),
        ("npm run", "run-script rum urn"),
        ("npm publish", "publi"),
        ("npm i", "install add i"),
        ("npm inst*", "i add"),
        ("pnpm install", "i add it"),
        ("pnpm remove", "rm uninstall un"),
        ("yarn add", "add"),
        ("svn delete", "rm del remove"),
        ("svn commit", "ci"),
        ("hg commit", "ci comm"),
        ("hg remove", "rm"),
        ("helm uninstall", "delete del un"),
        ("cargo run", "r"),
        ("cargo remove", "rm"),
        ("apt remove", "purge"),
        ("apt-get install", "reinstall build-dep"),
        ("systemctl restart", "try-restart reload-or-restart condrestart"),
        ("gem install", "i inst"),
        ("bundle install", "i"),
        ("bundle exec", "e ex exe"),
        ("composer require", "r req"),
        ("composer remove", "rm uninstall"),
        ("conda remove", "uninstall"),
        ("conda update", "upgrade"),
        ("brew install", "instal reinstall"),
        ("brew uninstall", "rm remove uninstal"),
        ("docker volume rm", "volume"),
        ("git push", "http-push"),
        ("dnf remove", "erase rm"),
        ("ip link", "l lin"),
    ] {
        let program = rule.split(' ').next().unwrap();
        for other in others.split(' ').filter(|other| *other != "volume") {
            all_denied(&deny(rule), &[&format!("{program} {other} x")]);
        }
    }
    all_denied(&deny("docker volume rm"), &["docker volume remove x"]);
    all_denied(&deny("gh pr create"), &["gh pr new", "gh -R a/b pr new --fill"]);
    all_denied(&deny("kubectl delete namespace"), &["kubectl delete ns x", "kubectl delete ns/x"]);
    all_allowed(
        &deny("npm install,npm run,apt purge,svn commit,brew install,cargo run,hg push"),
        &[
            "npm ci",
            "npm test",
            "npm r left-pad",
            "npm cit",
            "apt remove x",
            "svn co url",
            "brew info x",
            "cargo rm x",
            "hg pull",
        ],
    );
}

#[test]
fn a_sub_command_can_be_an_option_of_another() {
    all_denied(
        &deny("terraform destroy"),
        &["terraform apply -destroy", "terraform apply --destroy"],
    );
    all_denied(&deny("tofu destroy"), &["tofu apply -auto-approve -destroy=true"]);
    all_denied(&deny("helm install"), &["helm upgrade --install x y", "helm upgrade -i x y"]);
    all_denied(&deny("apt-get purge"), &["apt-get remove --purge x"]);
    all_denied(&deny("dotnet add package"), &["dotnet package add x"]);
    all_allowed(&deny("terraform destroy"), &["terraform apply", "terraform plan -destroy"]);
    all_allowed(&deny("helm install"), &["helm upgrade x y"]);
}

#[test]
fn an_option_before_the_sub_command_hides_nothing() {
    for (rule, commands) in [
        (
            "npm install",
            &[
                "npm --filter install",
                "npm --force false install",
                "npm --no-audit true install",
                "npm --prefix -- install",
                "npm -w web install",
                "npm --unknown install",
                "npm --unknown x install",
                "npm -gf install",
            ][..],
        ),
        (
            "docker run",
            &[
                "docker container --help=false run x",
                "docker --tlscert x container run y",
                "docker --unknown container --unknown run y",
            ],
        ),
        ("podman run", &["podman container --log-level debug run x"]),
        ("docker rmi", &["docker image --help=false rm x", "docker image remove x"]),
        ("pnpm install", &["pnpm -w i", "pnpm -r i", "pnpm -C x i", "pnpm recursive install"]),
        ("yarn add", &["yarn global add x", "yarn workspace web add x", "yarn --cwd x add y"]),
        ("yarn install", &["yarn", "yarn --frozen-lockfile", "yarn --cwd x", "yarn install"]),
        ("bundle install", &["bundle", "bundle --verbose"]),
        ("dotnet publish", &["dotnet -d publish", "dotnet --fx-version 8 publish"]),
        ("brew install", &["brew -d install x", "brew -v -q install x"]),
        ("svn delete", &["svn -R delete x", "svn --config-dir x rm y"]),
        ("composer require", &["composer -d x require y", "composer global require y"]),
        ("git push", &["git subtree push --prefix=x origin main"]),
        ("uv add", &["uv -C x add y", "uv --color never add y", "uv -n add y"]),
    ] {
        all_denied(&deny(rule), commands);
    }
    all_allowed(
        &deny("npm publish,docker run,pnpm add,git push,kubectl delete,yarn install"),
        &[
            "npm --silent run publish",
            "npm --prefix web run publish",
            "docker container --help=false ls",
            "docker container inspect run",
            "pnpm --filter web test",
            "git -C \"$dir\" status",
            "git --no-pager log push",
            "kubectl -n \"$NS\" get pods",
            "yarn test",
            "yarn run install",
            "yarn --version",
            "yarn -v",
        ],
    );
}

#[test]
fn an_alias_that_the_command_gives_to_git_may_be_any_sub_command() {
    let policy = deny("git push");
    let settings = "printf '[alias]\\np = push\\n' >> .git/config; ";
    for command in ["git p", "git -C x co main", "git pushall origin"] {
        all_denied(&policy, &[&format!("{settings}{command}")]);
        all_allowed(&policy, &[command]);
        all_allowed(&deny("rm"), &[&format!("{settings}{command}")]);
    }
    all_denied(&policy, &["cp x ~/.gitconfig && git p", "cd .git; tee config < x; git p"]);
    all_denied(&deny("git commit --amend"), &["echo > .git/config; git ca"]);
    all_allowed(&policy, &["python3 -m"]);
    for command in ["git status", "git lfs pull", "git --version", "git", "git help push"] {
        all_allowed(&policy, &[&format!("{settings}{command}")]);
    }
    assert_eq!(
        refusal(&policy, "echo x > ~/.gitconfig; git co main"),
        "`git co main` (at 23) is only known at run time (it may be an alias in the settings of git that were written); \
         write the command out"
    );
}

#[test]
fn a_program_may_be_a_script_of_its_interpreter() {
    all_denied(
        &deny("npm install,npx,yarn add,pnpm,pip install,composer require,rm"),
        &[
            "node /usr/lib/node_modules/npm/bin/npm-cli.js install x",
            "node /usr/lib/node_modules/npm/bin/npm-cli install x",
            "node /usr/lib/node_modules/npm/index install x",
            "node --no-warnings ./npm-cli.js i x",
            "node /usr/lib/node_modules/npm/index.js install x",
            "node /usr/lib/node_modules/npm install x",
            "node bin/npx-cli.js x",
            "node .yarn/releases/yarn-4.1.0.cjs add x",
            "node yarn.js add x",
            "node lib/node_modules/pnpm/bin/pnpm.cjs add x",
            "node npm-cli.js exec rm x",
            "python3 /usr/lib/python3/dist-packages/pip/__main__.py install x",
            "python3 -m pip install x",
            "php composer.phar require x",
        ],
    );
    all_allowed(
        &deny("npm install,pip install"),
        &["node index.js install", "node npm-cli.js test", "node src/cli.js install"],
    );
}

#[test]
fn a_program_of_many_is_the_one_it_is_told_to_be() {
    let commands = [
        "coreutils --coreutils-prog=rm x",
        "coreutils --coreutils-prog-shebang=rm x",
        "coreutils rm x",
        "busybox rm x",
    ];
    all_denied(&deny("rm"), &commands);
    all_denied(&deny("rm -rf"), &["coreutils --coreutils-prog=rm -rf x"]);
    all_denied(&allow("coreutils"), &commands[..3]);
    all_allowed(&deny("rm"), &["coreutils --coreutils-prog=ls x", "coreutils --help"]);
}

#[test]
fn the_package_that_npx_installs_is_not_the_command_it_runs() {
    let policy = allow("npx eslint");
    all_allowed(&policy, &["npx eslint .", "npx -y eslint ."]);
    all_allowed(&allow("npx -p typescript eslint"), &["npx -p typescript eslint ."]);
    all_denied(
        &policy,
        &[
            "npx -p eslint evil",
            "npx -y -p eslint evil",
            "npx -q -p eslint -- evil",
            "npx -p evil eslint",
        ],
    );
    all_denied(&deny("npx cowsay"), &["npx -p a cowsay", "npx --package a cowsay"]);
}

#[test]
fn a_module_is_a_part_of_its_package() {
    all_denied(
        &deny("pip install"),
        &[
            "python3 -m pip.__main__ install x",
            "python3 -Bm pip.__main__ install x",
            "python3 -W ignore -m pip.__pip-runner__ install x",
            "python3 /usr/lib/python3/dist-packages/pip/__pip-runner__.py install x",
        ],
    );
    all_allowed(
        &deny("pip install,http"),
        &["python3 -m pip.__main__ list", "python3 -m pipx.install x", "python3 -m unittest.main"],
    );
}

#[test]
fn the_beginning_of_any_name_counts_where_programs_complete_it() {
    all_denied(&deny("npm install"), &["npm install-t", "npm install-te", "npm insta"]);
    all_denied(&deny("npm ci"), &["npm install-ci", "npm clean-i"]);
    all_denied(&deny("cvs commit"), &["cvs ci", "cvs -Q com -m x", "cvs -d x commit"]);
    all_denied(&deny("hg push"), &["chg push", "hg pus"]);
    all_denied(&deny("quilt push,btrfs subvolume delete"), &["quilt pu", "btrfs su del x"]);
    all_allowed(
        &deny("npm install,npm test,cvs commit,quilt push"),
        &["npm ci", "npm run build", "npm exec x", "cvs co x", "cvs up", "quilt pop"],
    );
}

#[test]
fn a_long_option_is_its_letter() {
    for (rule, command) in [
        ("curl -o", "curl --output x"),
        ("wget -O", "wget --output-document=x"),
        ("make -f", "make --file=x"),
        ("make -C", "make --dir=x"),
        ("tee -a", "tee --append x"),
        ("node -e", "node --eval x"),
        ("tar -I", "tar --use-compress-program=x -cf y z"),
        ("rsync -e", "rsync --rsh=x a b"),
        ("docker run -v", "docker run --volume /:/x y"),
        ("docker run --privileged -v", "docker run --privileged --volume=/:/x y"),
        ("kubectl delete -f", "kubectl delete --filename x"),
        ("kubectl delete -A", "kubectl delete --all-namespaces"),
        ("npm install -g", "npm install --global x"),
        ("sudo -u", "sudo --user=x y"),
        ("chmod -R", "chmod --recursive x y"),
        ("kill -s", "kill --signal KILL 1"),
        ("git commit -m", "git commit --message=x"),
        ("tail -f", "tail --follow x"),
        ("curl --output", "curl -sox y"),
        ("sed --regexp-extended", "sed -nr x"),
        ("sed -r", "sed --regexp-extended x"),
    ] {
        all_denied(&deny(rule), &[command]);
    }
    for (rule, command) in [
        ("curl -o", "curl --remote-name https://x"),
        ("curl -o", "curl --url https://x"),
        ("make -f", "make --keep-going"),
        ("tee -a", "tee --ignore-interrupts x"),
        ("tar -x", "tar --list --file y"),
        ("docker system prune -f", "docker system prune --filter x"),
        ("docker compose down -v", "docker compose down"),
        ("kubectl delete -f", "kubectl delete --force pod x"),
        ("npm install -g", "npm install --save x"),
        ("git push -f", "git push --force-with-lease"),
    ] {
        all_allowed(&deny(rule), &[command]);
    }
}

#[test]
fn every_goal_counts() {
    all_denied(
        &deny(
            "make deploy,ninja deploy,rake deploy,just deploy,mvn deploy,gradle deploy,ant deploy,invoke deploy",
        ),
        &[
            "make all deploy",
            "make V=1 deploy",
            "make -j2 all ./deploy",
            "make -f x.mk all -- deploy",
            "make all $GOAL",
            "make {all,deploy}",
            "gmake all deploy",
            "remake deploy || make -C x y .//deploy",
            "ninja -C out all x/../deploy",
            "rake all 'deploy[production]'",
            "just build deploy",
            "just sub/deploy",
            "just app::deploy",
            "mvn clean deploy",
            "mvn -q clean deploy:deploy@x",
            "gradle build :app:deploy",
            "gradle build depl",
            "ant clean deploy",
            "invoke build deploy",
        ],
    );
    all_denied(&deny("gradle publishToMavenLocal"), &["gradle test pTML", "gradle publishTo"]);
    all_denied(&deny("make deploy prod"), &["make deploy prod", "make prod all deploy"]);
    all_allowed(
        &deny(
            "make deploy,ninja deploy,rake deploy,just deploy,mvn deploy,gradle deploy,make x prod",
        ),
        &[
            "make all test",
            "make deploy-docs",
            "make docs/deploy",
            "make -C deploy test",
            "make test -f deploy",
            "make test NAME=deploy",
            "just test NAME=\"$x\"",
            "make test -j$(nproc)",
            "make test-\"$x\"",
            "make \"$x\".o",
            "make x",
            "ninja -C deploy test",
            "ninja deploy/all",
            "rake test 'run[deploy]'",
            "mvn -pl deploy test",
            "mvn deployer:run",
            "gradle build -x deploy",
            "gradle :deploy:build",
            "gradle run dependencies",
        ],
    );
    all_allowed(&deny("gradle publishToMavenLocal"), &["gradle publish", "gradle build test"]);
}

#[test]
fn a_script_of_a_package_is_denied_with_run_and_without() {
    for (rule, commands) in [
        (
            "npm test",
            &["npm run test", "npm run-script test", "npm rum test", "npm urn test", "npm t"][..],
        ),
        ("npm t", &["npm run test", "npm test"]),
        ("npm run test", &["npm test", "npm t", "npm tst", "npm install-test", "npm rum test"]),
        ("npm start", &["npm run start", "npm restart", "npm run restart"]),
        ("npm run start", &["npm start", "npm restart"]),
        ("npm stop", &["npm run stop", "npm restart"]),
        ("npm run *", &["npm test", "npm start", "npm run x"]),
        ("pnpm test", &["pnpm run test", "pnpm run-script test"]),
        ("pnpm run build", &["pnpm build", "pnpm run build"]),
        ("yarn run deploy", &["yarn deploy", "yarn workspace web deploy"]),
        ("yarn deploy", &["yarn run deploy"]),
    ] {
        all_denied(&deny(rule), commands);
    }
    all_allowed(
        &deny("npm test,npm run build,yarn run install,yarn run deploy"),
        &[
            "npm start",
            "npm run lint",
            "npm build",
            "yarn install",
            "yarn run build",
            "yarn add deploy",
        ],
    );
}

#[test]
fn a_goal_that_an_option_or_a_variable_adds_counts() {
    all_denied(
        &deny("make deploy"),
        &[
            "make .DEFAULT_GOAL=deploy",
            "make .DEFAULT_GOAL:=deploy",
            "make '.DEFAULT_GOAL ::= deploy'",
            "make .DEFAULT_GOAL!='echo deploy'",
            "make -e .DEFAULT_GOAL=deploy",
            "make ' .DEFAULT_GOAL=deploy'",
            "make $'\\t.DEFAULT_GOAL=deploy'",
            "make '$(if x,.DEFAULT_GOAL)=deploy'",
            "make 'MAKEFLAGS=-- $(x).DEFAULT_GOAL=deploy'",
            "MAKEFILES=m make",
            "make .DEFAULT_GOAL=$x",
            "env .DEFAULT_GOAL=deploy make -e",
            "make --eval='.DEFAULT_GOAL:=deploy'",
            "make --eval='x: deploy' x",
            "make --eval 'x: deploy' x",
            "make --ev='x: deploy' x",
            "make -E 'x: deploy' x",
            "make -kE 'x: deploy' x",
            "make MAKEFLAGS=--eval=x",
            "make 'MAKEFLAGS=k -- .DEFAULT_GOAL=deploy'",
            "printf 'include Makefile\n.DEFAULT_GOAL:=deploy\n' | make -f -",
            "printf '.DEFAULT_GOAL:=deploy\n' > m.mk; make -f Makefile -f m.mk",
            "make -f $makefile",
        ],
    );
    let held = Scene { locked: true, ..support::SCENE };
    for command in ["cat x | make -f -", "echo > m.mk; make -f m.mk"] {
        let verdict = |rule: &str| deny(rule).judge(command, "bash", &held).verdict;
        assert!(matches!(verdict("make deploy"), Verdict::Deny(_)), "{command}");
        assert_eq!(verdict("git push"), Verdict::Allow, "{command}");
    }
    all_denied(&deny("ninja deploy"), &["ninja deploy^", "ninja x^", "ninja all ./x^"]);
    all_denied(
        &deny("rake deploy"),
        &["rake rake:deploy", "rake ^deploy", "rake rake:rake:deploy[x]"],
    );
    all_allowed(
        &deny("make deploy,ninja deploy,rake deploy,make -n"),
        &[
            "make",
            "make test",
            "make -e test",
            "make V=1 test",
            "make -f ci.mk test",
            "make -C sub -j4 test",
            "make -W E test",
            "ninja test",
            "rake test",
        ],
    );
}
