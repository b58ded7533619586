//! Generates scripts in which variables, arguments and arithmetic decide what runs.

use mcpz_policy::Shell;

use super::generator::{Generator, STUBS};

impl Generator {
    /// A few statements that pass values around, and use them.
    pub fn passing_script(&mut self) -> String {
        let statements: Vec<_> = (0..2 + self.below(3)).map(|_| self.statement(2)).collect();
        statements.join("\n")
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth > 0 && self.below(3) == 0 {
            return self.compound(depth - 1);
        }
        match self.below(16) {
            0..7 => self.setting(),
            7..14 => self.running(),
            _ if self.shell() == Shell::Bash => self.evaluating(),
            _ => self.running(),
        }
    }

    fn compound(&mut self, depth: usize) -> String {
        let inner = self.statement(depth);
        match self.below(12) {
            0 => format!("f() {{ {inner}\n}}; f {}", self.value()),
            1 => format!(
                "f() {{ {inner}\n}}\ng() {{ f \"$1\" {}\n}}\ng {}",
                self.value(),
                self.value()
            ),
            2 => format!(
                "for {} in {} {}; do {inner}\ndone",
                self.variable(),
                self.value(),
                self.value()
            ),
            3 => format!("if {}; then {inner}\nfi", self.pick(&["true", "false"])),
            4 => format!("( {inner}\n)"),
            5 => format!("eval '{}'", inner.replace('\'', "'\\''")),
            6 => format!("sh -c '{}' _ {}", inner.replace('\'', "'\\''"), self.value()),
            7 => format!("{} && {inner}", self.pick(&["true", "false", "! true"])),
            8 => format!("i=0; while [ $i -lt 2 ]; do {inner}\ni=$((i+1)); done"),
            9 => format!("f() {{ shift; {inner}\n}}; f {} {}", self.value(), self.value()),
            10 => format!("f() {{ {inner}\n}}; {}\nf \"$x\" $y", self.setting()),
            _ => format!("{inner}\n{}", self.statement(depth)),
        }
    }

    fn variable(&mut self) -> &'static str {
        self.pick(&["x", "y", "z"])
    }

    /// A word to pass on.
    fn value(&mut self) -> String {
        let stub = self.pick(&STUBS);
        let (head, tail) = stub.split_at(2);
        match self.below(48) {
            0 => head.to_owned(),
            1 => tail.to_owned(),
            2 => format!("'{stub} x'"),
            3 => format!("'env {stub}'"),
            4 => format!("'a[$({stub})]'"),
            5 => format!("'$({stub})'"),
            6 => format!("'-v a[$({stub})]'"),
            7 => "$x".to_owned(),
            8 => "\"$y\"".to_owned(),
            9 => format!("{head}$z"),
            10 => "$x$y".to_owned(),
            11 => "\"$1\"".to_owned(),
            12 => "\"$@\"".to_owned(),
            13 => "$((1 + 1))".to_owned(),
            14 => "''".to_owned(),
            15 => format!("$(echo {stub})"),
            16 => "env".to_owned(),
            17 => "5".to_owned(),
            18 => "-v".to_owned(),
            19 => "y".to_owned(),
            20 if self.shell() == Shell::Bash => format!("{{{stub},x}}"),
            _ => stub.to_owned(),
        }
    }

    /// A statement that sets something.
    fn setting(&mut self) -> String {
        let (name, value) = (self.variable(), self.value());
        let bash = self.shell() == Shell::Bash;
        match self.below(if bash { 30 } else { 16 }) {
            0 => format!("set -- {value} {}", self.value()),
            1 => "shift".to_owned(),
            2 => format!("unset {name}"),
            3 => format!("export {name}={value}"),
            4 => format!(": ${{{name}:={value}}}"),
            5 => format!("read {name} <<E\n{}\nE", value.replace('\'', "")),
            9 if bash => format!("{name}+={value}"),
            10 if bash => format!("declare {name}={value}"),
            11 if bash => format!("printf -v {name} {value}"),
            12 if bash => format!("{name}=({value} {})", self.value()),
            13 if bash => format!("read {name} <<< {value}"),
            14 if bash => format!("{name}[0]={value}"),
            15 if bash => format!("((n = {name}))"),
            16 if bash => {
                format!("declare -{} {name}; {name}={value}", self.pick(&["u", "i", "a"]))
            }
            17 if bash => format!("{name}=${{{name}/a/{value}}}"),
            _ => format!("{name}={value}"),
        }
    }

    /// A statement that runs what it finds.
    fn running(&mut self) -> String {
        let name = self.variable();
        match self.below(13) {
            0 => "\"$@\"".to_owned(),
            1 => "$@".to_owned(),
            2 => "$1".to_owned(),
            3 => "\"$1\" \"$2\"".to_owned(),
            4 => "$x$y".to_owned(),
            5 => format!("env ${name}"),
            6 => format!("env \"${name}\" $x"),
            7 => format!("eval \"${name}\""),
            8 => format!("\"${name}\""),
            9 => "$1$2".to_owned(),
            10 => format!("sh -c \"${name}\""),
            11 => "env \"$@\"".to_owned(),
            _ => format!("${name} y"),
        }
    }

    /// A statement in which bash evaluates what it finds.
    fn evaluating(&mut self) -> String {
        let name = self.variable();
        match self.below(17) {
            0 => format!("(({name}))"),
            1 => format!("echo $(( ${name} + 1 ))"),
            2 => format!("[[ ${name} -eq 1 ]]"),
            3 => format!("[[ {name} -lt 3 ]]"),
            4 => format!("echo ${{a[{name}]}}"),
            5 => format!("echo ${{!{name}}}"),
            6 => format!("[[ -v ${name} ]]"),
            7 => format!("[ -v \"${name}\" ]"),
            8 => format!("test ${name} $x"),
            9 => format!("let {name}"),
            10 => format!("a[${name}]=1"),
            11 => format!("declare -i n=${name}"),
            12 => format!("echo ${{x:{name}}}"),
            13 => format!("printf -v \"${name}\" 1"),
            14 => format!("unset \"${name}\""),
            15 => "echo $(( $1 ))".to_owned(),
            _ => format!("echo >& ${name}"),
        }
    }
}
