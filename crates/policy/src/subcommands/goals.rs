//! Programs that run all their operands: `make all deploy`.
//!
//! Each operand is a goal, whatever it comes after, so a deny rule such as `make deploy` looks at all of them.

use crate::names::Names;

/// How some programs that run all their operands name them.
pub struct Goals {
    programs: Names,
    /// Options whose value is the next word. Another option's next word may be a goal.
    valued: Names,
    /// The signs after which the goal itself stands, in a project or folder that is named first: `:app:deploy`.
    separators: &'static [char],
    /// Whether a goal may be a path with `..` in it.
    resolves_paths: bool,
    /// Whether the beginnings of the words in a goal's name stand for it: `pTML` for `publishToMavenLocal`.
    abbreviates: bool,
    /// What may stand before a goal and changes nothing: `rake:deploy` is `deploy`.
    prefixes: &'static [&'static str],
    /// The end of a goal that stands for another one, which only its file knows.
    stands_for_another: Option<char>,
    /// Whether options and variables can add goals, as those of make can.
    takes_code: bool,
}

const PLAIN: Goals = Goals {
    programs: Names(""),
    valued: Names(""),
    separators: &[],
    resolves_paths: false,
    abbreviates: false,
    prefixes: &[],
    stands_for_another: None,
    takes_code: false,
};

const GOALS: &[Goals] = &[
    Goals {
        programs: Names("make gmake remake mingw32-make"),
        valued: Names(
            "-C -f -I -o -W -E --directory --file --makefile --include-dir --old-file --assume-old --what-if \
             --new-file --assume-new --eval",
        ),
        takes_code: true,
        ..PLAIN
    },
    Goals { programs: Names("bmake pmake nmake"), valued: Names("-C -f -I -m"), ..PLAIN },
    Goals {
        programs: Names("ninja ninja-build samu"),
        valued: Names("-C -f -j -k -l -d -w"),
        resolves_paths: true,
        // `x^` is the first file that is made from `x`.
        stands_for_another: Some('^'),
        ..PLAIN
    },
    Goals {
        programs: Names("rake jake"),
        valued: Names("-f -I -r -R --rakefile --libdir --require --rakelibdir"),
        prefixes: &["rake:", "^"],
        ..PLAIN
    },
    Goals {
        programs: Names("just"),
        valued: Names("-f -d --justfile --working-directory --shell --dotenv-path"),
        separators: &['/', ':'],
        ..PLAIN
    },
    Goals {
        programs: Names("mvn mvnw mvnd"),
        valued: Names(
            "-f -s -gs -pl -rf -T -P --file --settings --projects --resume-from --threads",
        ),
        separators: &[':'],
        ..PLAIN
    },
    Goals {
        programs: Names("gradle gradlew"),
        valued: Names(
            "-x -p -b -c -g -I --exclude-task --project-dir --build-file --settings-file --gradle-user-home \
             --init-script --tests --max-workers --console --warning-mode",
        ),
        separators: &[':'],
        abbreviates: true,
        ..PLAIN
    },
    Goals {
        programs: Names("ant"),
        valued: Names("-f -file -buildfile -lib -l -logfile -logger -listener -propertyfile"),
        ..PLAIN
    },
    Goals { programs: Names("invoke inv fab"), valued: Names("-c -r --collection"), ..PLAIN },
    Goals { programs: Names("task"), valued: Names("-d -t --dir --taskfile"), ..PLAIN },
    Goals { programs: Names("scons"), valued: Names("-C -f --directory --file"), ..PLAIN },
    Goals { programs: Names("turbo"), valued: Names("--filter --concurrency --cwd"), ..PLAIN },
    Goals { programs: Names("mage doit gulp grunt phing cap waf sbt"), ..PLAIN },
];

/// Tasks of gradle that nearly every project has. They abbreviate nothing.
const USUAL_TASKS: Names = Names(
    "assemble build check classes clean dependencies help init install jar javadoc projects properties publish run \
     tasks test wrapper",
);

/// Variables by which make gets goals from its environment.
const VARIABLES: Names = Names(".DEFAULT_GOAL MAKEFILES MAKEFLAGS GNUMAKEFLAGS MFLAGS");

/// Whether a program may run other goals because of a variable in its environment.
pub fn adds_goals(program: &str, variable: &str) -> bool {
    VARIABLES.has(variable) && goals(program).is_some_and(|goals| goals.takes_code)
}

/// How a program names its goals, if it runs all its operands.
pub fn goals(program: &str) -> Option<&'static Goals> {
    GOALS.iter().find(|goals| goals.programs.has(program))
}

impl Goals {
    pub fn takes_value(&self, option: &str) -> bool {
        self.valued.has(option)
    }

    /// Whether the beginning of a word tells which goal it is.
    pub fn are_plain(&self) -> bool {
        self.separators.is_empty() && !self.resolves_paths && !self.abbreviates
    }

    /// A goal as rules are compared with it: `deploy` for `./deploy` and for `deploy[production]`.
    pub fn plain(&self, goal: &str) -> String {
        let mut goal = goal.split('[').next().unwrap_or(goal);
        while let Some(rest) = self.prefixes.iter().find_map(|prefix| goal.strip_prefix(prefix)) {
            goal = rest;
        }
        if !goal.contains('/') {
            return goal.to_lowercase();
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in goal.split('/').filter(|part| !["", "."].contains(part)) {
            let leaves = self.resolves_paths && part == "..";
            match parts.last() {
                Some(last) if leaves && *last != ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        let root = if goal.starts_with('/') { "/" } else { "" };
        format!("{root}{}", parts.join("/")).to_lowercase()
    }

    /// Whether a goal stands for another one.
    pub fn stands_for_another(&self, goal: &str) -> bool {
        self.stands_for_another.is_some_and(|end| goal.ends_with(end))
    }

    /// Whether an argument that begins like this may set goals.
    pub fn sets_goals(&self, beginning: &str) -> bool {
        let name = beginning.split('=').next().unwrap_or_default();
        let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']).trim_start();
        if self.takes_code && name.contains('$') {
            return true;
        }
        let may_be = |known: &str| match beginning.contains('=') {
            true => known == name,
            false => known.starts_with(name) && name.len() > 1,
        };
        self.takes_code && VARIABLES.iter().any(may_be)
    }

    /// Whether its options and variables can add goals.
    pub fn take_code(&self) -> bool {
        self.takes_code
    }

    /// The goals that an argument adds besides its own name. `None` if they may be any.
    pub fn added(&self, argument: &str) -> Option<Vec<String>> {
        if !self.takes_code {
            return Some(Vec::new());
        }
        let long = argument.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long));
        let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        // Others take the rest of the word.
        let letters =
            cluster.and_then(|letters| letters.split(|it| "CfIoWjlO".contains(it)).next());
        if long.is_some_and(|long| long.len() > 1 && "eval".starts_with(long))
            || letters.is_some_and(|letters| letters.contains('E'))
        {
            return None;
        }
        let Some((name, value)) = argument.split_once('=') else { return Some(Vec::new()) };
        let (runs, name) =
            (name.ends_with('!'), name.trim_end_matches([':', '+', '?', '!', ' ', '\t']));
        match name.trim_start() {
            // Make puts the name together.
            name if name.contains('$') => None,
            // What is in such a file is not read.
            "MAKEFILES" if !value.trim().is_empty() => None,
            "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => {
                let added = value.split_ascii_whitespace().map(|word| {
                    // The first word is letters, perhaps without a dash.
                    let is_code =
                        !word.starts_with('-') && !word.contains('=') && word.contains('E');
                    if is_code { None } else { self.added(word) }
                });
                Some(added.collect::<Option<Vec<_>>>()?.concat())
            }
            ".DEFAULT_GOAL" if runs || value.contains('$') => None,
            ".DEFAULT_GOAL" => Some(value.split_ascii_whitespace().map(str::to_owned).collect()),
            _ => Some(Vec::new()),
        }
    }

    /// The goal without the project or folder it is in: `deploy` for `:app:deploy`.
    pub fn without_project<'a>(&self, goal: &'a str) -> &'a str {
        let goal = goal.split('@').next().unwrap_or(goal);
        goal.rsplit(self.separators).next().unwrap_or(goal)
    }

    /// Whether a goal may be an abbreviation of another.
    pub fn abbreviate(&self, given: &str, wanted: &str) -> bool {
        let given = self.without_project(given);
        let matches = || {
            let (given, wanted) = (words_of(given), words_of(wanted));
            let mut pairs = given.iter().zip(&wanted);
            given.len() <= wanted.len() && pairs.all(|(given, wanted)| wanted.starts_with(given))
        };
        self.abbreviates && !given.is_empty() && !USUAL_TASKS.has(given) && matches()
    }
}

/// The words in a name, in lower case: `publish`, `to`, `maven`, `local`.
fn words_of(name: &str) -> Vec<String> {
    let starts = name.char_indices().filter(|(at, c)| *at == 0 || c.is_uppercase() || *c == '-');
    let mut starts: Vec<_> = starts.map(|(at, _)| at).collect();
    starts.push(name.len());
    let words = starts.windows(2).map(|pair| name[pair[0]..pair[1]].trim_start_matches('-'));
    words.map(str::to_lowercase).collect()
}
