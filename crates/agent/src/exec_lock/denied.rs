//! What deny rules refuse to execute: programs by their name, their file or its content, perhaps only with some
//! arguments.
//!
//!     execve ─▶ every program that would start ─▶ its names, the files of denied programs ─▶ rule
//!
//! More than one program may start: a script has an interpreter, the loader runs what its arguments name, and some
//! files are many programs.

mod files;

use std::cell::Cell;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use mcpz_policy::{ExactCall, Rule, glob, opens_programs, without_g};

use super::formats::Format;
use super::identity::Changed;
use super::listings::Listings;
use super::real_path::real_path_for;
use super::seen::State;
use super::target::{Target, base_name};
use crate::exec_rules::RefusedBecause;
use files::Files;

/// Programs that are many in one file, and choose by the name they are called by. Their file says nothing.
const MANY_IN_ONE: [&str; 3] = ["busybox*", "toybox*", "coreutils"];

/// Interpreters that open programs which rules may deny, such as `npm` and `pip`.
const INTERPRETERS: [&str; 5] = ["node", "perl", "php", "python", "ruby"];

/// How many formats may lead to one another. The kernel stops earlier.
const MAX_FORMATS: usize = 5;

/// How often such a program may choose itself: `busybox busybox rm`.
const MAX_CHOICES: usize = 8;

/// Where the dynamic loader is, and what it is called.
const LOADER_FOLDERS: [&str; 6] =
    ["/lib64", "/lib", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib32", "/libx32"];
pub const LOADERS: [&str; 3] = ["ld*.so*", "libc.musl*", "libc.so"];

/// What a decision needs besides the file and its arguments.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// Looks up a path for the process that asks.
    pub find: &'a dyn Fn(&[u8]) -> io::Result<Target>,
    /// Whether nobody waits for the answer any more. With many arguments and rules, it takes long.
    pub is_over: &'a dyn Fn() -> bool,
}

/// The deny rules of a run.
pub struct Denied {
    rules: Vec<DenyRule>,
    /// Where denied programs are looked up.
    folders: Vec<PathBuf>,
    /// What those were when they were looked at last.
    states: Vec<Option<State>>,
    listings: Listings,
    loaders: Files,
    many_in_one: Files,
    interpreters: Files,
}

/// A rule, and the files of the program that it names.
struct DenyRule {
    text: String,
    rule: Rule,
    files: Files,
}

impl Denied {
    /// `folders` are those of `PATH`.
    pub fn new(rules: Vec<String>, folders: Vec<PathBuf>) -> Self {
        let rules = rules.into_iter().filter_map(|text| {
            // The policy has made them from rules.
            let rule = Rule::new(&text).ok()?;
            Some(DenyRule { text, rule, files: Files::default() })
        });
        let (listings, loaders, many_in_one, interpreters) = Default::default();
        let rules = rules.collect();
        let states = Vec::new();
        let mut new = Self { rules, folders, states, listings, loaders, many_in_one, interpreters };
        if !new.rules.is_empty() {
            let Self { folders, listings, loaders, many_in_one, .. } = &mut new;
            let lib = LOADER_FOLDERS.map(PathBuf::from);
            LOADERS.iter().for_each(|name| loaders.find(name, &lib, listings));
            MANY_IN_ONE.iter().for_each(|name| many_in_one.find(name, folders, listings));
            new.look_up();
        }
        new
    }

    /// Looks up the files of denied programs once more, if names in the folders or what they lead to have changed.
    pub fn keep_up(&mut self) {
        if self.rules.is_empty() {
            return;
        }
        let states = states(&self.folders);
        let is_same = |(before, now): (&Option<State>, Option<State>)| State::is_same(*before, now);
        let is_known = self.states.iter().zip(states).all(is_same)
            && self.interpreters.are_there()
            && self.rules.iter().all(|rule| rule.files.are_there());
        if !is_known {
            self.look_up();
        }
    }

    /// Looks up the files of denied programs, and keeps those that were found before.
    pub fn look_up(&mut self) {
        self.states = states(&self.folders);
        self.interpreters.forget_names();
        for name in INTERPRETERS {
            self.interpreters.find(name, &self.folders, &mut self.listings);
            self.interpreters.find_otherwise(name, &self.folders, &mut self.listings);
        }
        for DenyRule { text, rule, files } in &mut self.rules {
            let Some(name) = rule.program() else { continue };
            files.forget_names();
            let (folders, listings) = (&self.folders, &mut self.listings);
            files.find(name, folders, listings);
            let plain = name.to_lowercase();
            files.find(&plain, folders, listings);
            files.find(without_g(&plain), folders, listings);
            files.find_otherwise(without_g(&plain), folders, listings);
            let path = text.split_whitespace().next().filter(|path| path.starts_with('/'));
            if let Some(path) = path.map(PathBuf::from) {
                files.watch(path.clone());
                files.add([path]);
            }
        }
    }

    /// Why the file may not be executed with these arguments, of which the first is its name.
    pub fn refuses(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Option<RefusedBecause> {
        match self.rules.is_empty() {
            true => None,
            false => self.refuses_among(target.formats(), target, arguments, asking, 0),
        }
    }

    /// The same where the kernel was told these formats, of a program behind so many interpreters of them.
    fn refuses_among(
        &self,
        formats: &[Format],
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
        depth: usize,
    ) -> Option<RefusedBecause> {
        if let Some(rule) = self.rule(target, arguments, asking) {
            return Some(RefusedBecause::Denied(rule.to_owned()));
        }
        let refuses = |target: &Target, arguments: &[Vec<u8>], depth| {
            self.refuses_among(formats, target, arguments, asking, depth)
        };
        let by_format = target.formats_among(formats).find_map(|format| {
            // What cannot be found may be denied.
            let Some(interpreter) = format.interpreter().filter(|_| depth < MAX_FORMATS) else {
                return Some(RefusedBecause::Unclear);
            };
            let Ok(found) = (asking.find)(interpreter.as_bytes()) else {
                return Some(RefusedBecause::Unclear);
            };
            let path = target.path.as_os_str().as_bytes();
            let own = [interpreter.as_bytes(), path].map(<[u8]>::to_vec).into_iter();
            let arguments: Vec<_> = own.chain(arguments.iter().skip(1).cloned()).collect();
            refuses(&found, &arguments, depth + 1)
        });
        if by_format.is_some() {
            return by_format;
        }
        if self.is_loader(target) {
            return self.refuses_loaded(arguments, asking);
        }
        let interpreter = target.interpreter.as_ref()?;
        refuses(&interpreter.target, &target.interpreter_arguments(arguments), depth)
    }

    /// The same with those variables of its environment that say what it runs, as arguments of make would.
    pub fn refuses_with_variables(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        environment: impl FnOnce() -> io::Result<Vec<Vec<u8>>>,
        asking: Asking<'_>,
    ) -> Option<RefusedBecause> {
        let own = arguments.first().map(|name| String::from_utf8_lossy(name).into_owned());
        let own = own.unwrap_or_default();
        let names = [target.name(), target.real_name(), base_name(own.as_ref())];
        // Whatever it is called, it may be a copy of the program that a rule names, or load it.
        let matters = |variable: &str| {
            let about = |it: &DenyRule, name: &str| it.rule.is_about_variable_of(name, variable);
            let all = |it: &DenyRule| {
                it.rule.program().is_some_and(|own| about(it, own))
                    || names.iter().any(|name| about(it, name))
            };
            self.rules.iter().any(all)
        };
        if !matters(".DEFAULT_GOAL") {
            return None;
        }
        let Ok(environment) = environment() else { return Some(RefusedBecause::Unclear) };
        let set = environment.into_iter().filter(|entry| {
            let name = entry.split(|byte| *byte == b'=').next().unwrap_or_default();
            std::str::from_utf8(name).is_ok_and(matters)
        });
        self.refuses(target, &arguments.iter().cloned().chain(set).collect::<Vec<_>>(), asking)
    }

    /// The rule that denies one of the programs that would start, besides the interpreter of a script.
    fn rule(&self, target: &Target, arguments: &[Vec<u8>], asking: Asking<'_>) -> Option<&str> {
        let own = self.rule_for_program(target, arguments, asking);
        let own = own.or_else(|| self.rule_for_opened(target, arguments, asking));
        let loader = target.loader.as_ref();
        let rule = own.or_else(|| self.rule_for_program(loader?, arguments, asking));
        if rule.is_some() || !self.is_many_in_one(target) {
            return rule;
        }
        let mut arguments = arguments.to_vec();
        for _ in 0..MAX_CHOICES {
            arguments = chosen_program(&arguments)?;
            if let Some(rule) = self.rule_for_program(target, &arguments, asking) {
                return Some(rule);
            }
        }
        None
    }

    fn rule_for_program(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Option<&str> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let own = arguments.first().map(|name| text(name)).unwrap_or_default();
        // A login shell has a dash before its name.
        let own = own.strip_prefix('-').unwrap_or(&own);
        let mut names = vec![target.name(), target.real_name(), base_name(own.as_ref())];
        names.extend(target.links.iter().map(|link| base_name(link)));
        let is_new = |at: &usize| !names[..*at].contains(&names[*at]);
        let rest: Vec<_> = arguments.iter().skip(1).map(|argument| text(argument)).collect();
        let call = |name: &str| ExactCall::new(name, rest.iter().cloned());
        let calls: Vec<_> = (0..names.len()).filter(is_new).map(|at| call(names[at])).collect();
        let denies = |it: &&DenyRule| {
            let by_file =
                || it.files.name_of(target).is_some_and(|name| it.rule.denies(&call(name)));
            // Only a regular expression can be about a path.
            let by_path = || {
                let paths = [&target.path, &target.real_path];
                let mut paths = paths.into_iter().map(|path| text(path.as_os_str().as_bytes()));
                it.rule.program().is_none() && paths.any(|path| it.rule.denies(&call(&path)))
            };
            !(asking.is_over)()
                && (calls.iter().any(|call| it.rule.denies(call)) || by_file() || by_path())
        };
        self.rules.iter().find(denies).map(|it| it.text.as_str())
    }

    /// The rule that denies what an interpreter or shell would open: `npm test` for `node /usr/bin/npm test`.
    fn rule_for_opened(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Option<&str> {
        let by_name = [target.name(), target.real_name()].into_iter();
        let name =
            by_name.chain(self.interpreters.name_of(target)).find(|name| opens_programs(name))?;
        let rest = arguments.iter().skip(1).map(|word| String::from_utf8_lossy(word).into_owned());
        let directory = target.directory();
        let is_unclear = Cell::new(false);
        let resolve = |path: &str| {
            let found = real_path_for(target.process, &directory, path);
            let leads_anywhere = |error: &io::Error| error.raw_os_error() == Some(libc::ELOOP);
            is_unclear.set(is_unclear.get() || found.as_ref().is_err_and(leads_anywhere));
            found.ok().filter(|_| target.same_view)?.into_os_string().into_string().ok()
        };
        let call = ExactCall::new(name, rest);
        let rules = || self.rules.iter().take_while(|_| !(asking.is_over)());
        let denies = |opened: ExactCall| rules().find(|it| it.rule.denies(&opened));
        let denying = match call.opened(&resolve) {
            Some(mut opened) if !is_unclear.get() => opened.find_map(denies),
            _ => self.rules.first(),
        };
        denying.map(|it| it.text.as_str())
    }

    fn is_many_in_one(&self, target: &Target) -> bool {
        let name = target.real_name();
        MANY_IN_ONE.iter().any(|many| glob(many, name)) || self.many_in_one.has(target)
    }

    /// Whether it is the dynamic loader, which runs the program that its arguments name.
    fn is_loader(&self, target: &Target) -> bool {
        let is_name = |name: &str| name.starts_with("ld-") || name.starts_with("ld.so");
        is_name(target.name()) || is_name(target.real_name()) || self.loaders.has(target)
    }

    /// Why the loader may not be executed with these arguments.
    fn refuses_loaded(&self, arguments: &[Vec<u8>], asking: Asking<'_>) -> Option<RefusedBecause> {
        let name = arguments.iter().position(|option| option == b"--argv0");
        let name = name.and_then(|at| arguments.get(at + 1));
        (1..arguments.len()).find_map(|at| match (asking.find)(&arguments[at]) {
            Ok(loaded) => {
                let own = self.rule(&loaded, &arguments[at..], asking);
                let named =
                    name.map(|name| [std::slice::from_ref(name), &arguments[at + 1..]].concat());
                let rule = own.or_else(|| self.rule(&loaded, &named?, asking))?;
                Some(RefusedBecause::Denied(rule.to_owned()))
            }
            Err(error) if is_no_program(&error) => None,
            // The loader may find what we cannot.
            Err(_) => Some(RefusedBecause::Unclear),
        })
    }
}

/// Whether there is no program at a path, for anybody.
fn is_no_program(error: &io::Error) -> bool {
    let nothing = [libc::ENOENT, libc::ENOTDIR, libc::ENAMETOOLONG];
    error.raw_os_error().is_none_or(|errno| nothing.contains(&errno))
}

/// What `busybox rm x` and `coreutils --coreutils-prog=rm x` run.
fn chosen_program(arguments: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let first = arguments.get(1)?;
    let after = |prefix: &str| first.strip_prefix(prefix.as_bytes());
    let named = after("--coreutils-prog-shebang=").or_else(|| after("--coreutils-prog="));
    Some([&[named.unwrap_or(first).to_vec()], &arguments[2..]].concat())
}

fn states(folders: &[PathBuf]) -> Vec<Option<State>> {
    let now = Changed::now();
    folders.iter().map(|folder| State::at(folder, now)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Whether a rule denies executing a file with these arguments, where programs are in the folder around it.
    fn denies(rule: &str, path: &std::path::Path, arguments: &[&str]) -> bool {
        let folder = path.parent().unwrap().join("bin");
        let denied = Denied::new(vec![rule.to_owned()], vec![folder]);
        let target = Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
        let name = [path.as_os_str().as_bytes().to_vec()];
        let rest = arguments.iter().map(|word| word.as_bytes().to_vec());
        let arguments: Vec<_> = name.into_iter().chain(rest).collect();
        let find = |_: &[u8]| Err(io::ErrorKind::NotFound.into());
        let asking = Asking { find: &find, is_over: &|| false };
        denied.refuses(&target, &arguments, asking).is_some()
    }

    #[test]
    fn a_copy_of_a_program_that_is_there_only_by_another_name_is_denied() {
        let folder = tempfile::tempdir().unwrap();
        let (bin, copy) = (folder.path().join("bin"), folder.path().join("copy"));
        fs::create_dir(&bin).unwrap();
        fs::copy("/bin/true", &copy).unwrap();
        let cases = [("python", "python3.11"), ("perl5", "perl5.36"), ("fd", "fdfind")];
        for (rule, name) in
            cases.into_iter().chain([("ripgrep", "rg"), ("gcc", "gcc-12"), ("gsed", "sed")])
        {
            assert!(!denies(rule, &copy, &[]), "{rule}");
            fs::copy("/bin/true", bin.join(name)).unwrap();
            assert!(denies(rule, &copy, &[]), "{rule}");
            fs::remove_file(bin.join(name)).unwrap();
        }
        // A name that leads to another program says nothing about that.
        fs::copy("/bin/true", bin.join("nano")).unwrap();
        symlink("nano", bin.join("editor")).unwrap();
        assert!(!denies("vim", &copy, &[]));
    }

    #[test]
    fn make_and_copies_of_it_get_no_denied_goal_by_a_variable() {
        let folder = tempfile::tempdir().unwrap();
        let [make, copy, other] = ["make", "mk0", "other"].map(|it| folder.path().join(it));
        fs::copy("/bin/true", &make).unwrap();
        fs::copy("/bin/true", &copy).unwrap();
        fs::copy("/bin/echo", &other).unwrap();
        let bin = vec![folder.path().to_owned()];
        let denied = Denied::new(vec![String::from("make deploy")], bin);
        let find = |_: &[u8]| Err(io::ErrorKind::NotFound.into());
        let asking = Asking { find: &find, is_over: &|| false };
        let gets = |path: &std::path::Path, variable: &str| {
            let target = Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
            let environment = || Ok(vec![b"PATH=/bin".to_vec(), variable.as_bytes().to_vec()]);
            let arguments = [b"x".to_vec(), b"-e".to_vec()];
            denied.refuses_with_variables(&target, &arguments, environment, asking).is_none()
        };
        let denied = [".DEFAULT_GOAL=deploy", "MAKEFLAGS=k --eval=x: deploy", "MAKEFILES=m"];
        for variable in denied.into_iter().chain(["GNUMAKEFLAGS=-- .DEFAULT_GOAL=deploy"]) {
            assert!(!gets(&make, variable) && !gets(&copy, variable), "{variable}");
            assert!(gets(&other, variable), "{variable}");
        }
        for variable in [".DEFAULT_GOAL=all", "MAKEFLAGS=w -j4 -- V=1", "MAKEFILES="] {
            assert!(gets(&make, variable) && gets(&copy, variable), "{variable}");
        }
    }

    #[test]
    fn what_an_interpreter_opens_is_denied_like_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir_all(folder.path().join("lib/pip")).unwrap();
        fs::create_dir(&bin).unwrap();
        let (python, copy) = (bin.join("python3.11"), folder.path().join("copy"));
        fs::copy("/bin/true", &python).unwrap();
        fs::copy("/bin/true", &copy).unwrap();
        let pip = folder.path().join("lib/pip");
        symlink(&pip, folder.path().join("q")).unwrap();
        let (pip, link) = (pip.to_str().unwrap(), folder.path().join("q"));
        for opened in [&["-m", "pip"][..], &["-W", "ignore", pip], &[link.to_str().unwrap()]] {
            let with = |last: &'static str| [opened, &[last, "x"]].concat();
            assert!(denies("pip install", &copy, &with("install")), "{opened:?}");
            assert!(!denies("pip install", &copy, &with("list")), "{opened:?}");
        }
    }

    #[test]
    fn the_interpreter_of_a_format_is_denied_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gx");
        fs::copy("/bin/echo", &path).unwrap();
        let target = Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
        let arguments = [b"a.gx".to_vec()];
        let find = |path: &[u8]| Target::find_own(None, path);
        let asking = Asking { find: &find, is_over: &|| false };
        let why = |rule: &str, interpreter: &str| {
            let text = format!("enabled\ninterpreter {interpreter}\nflags: \nextension .gx\n");
            let formats = [Format { path: PathBuf::from("gx"), text: Some(text) }];
            let denied = Denied::new(vec![rule.to_owned()], vec![PathBuf::from("/bin")]);
            denied.refuses_among(&formats, &target, &arguments, asking, 0)
        };
        assert!(matches!(why("true", "/bin/true"), Some(RefusedBecause::Denied(_))));
        assert!(matches!(why("true *.gx", "/bin/true"), Some(RefusedBecause::Denied(_))));
        assert!(why("true", "/bin/false").is_none());
        assert!(matches!(why("true", "/nonexistent"), Some(RefusedBecause::Unclear)));
    }
}
