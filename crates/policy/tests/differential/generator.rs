//! Generates scripts nobody would write, from all constructs of a shell.

use mcpz_policy::Shell;

/// Programs that exist while the scripts run, and only record that they ran.
pub const STUBS: [&str; 5] = ["alpha", "beta", "gamma", "delta", "omega"];

/// A generator with pseudo-random numbers that are the same every time.
pub struct Generator {
    state: u64,
    shell: Shell,
    /// How many names it has invented.
    names: u32,
}

impl Generator {
    pub fn new(seed: u64, shell: Shell) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, shell, names: 0 }
    }

    pub fn shell(&self) -> Shell {
        self.shell
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % limit
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A script. Half of them are mutated.
    pub fn script(&mut self) -> String {
        let mut script = self.list(3);
        if self.below(2) == 0 {
            for _ in 0..=self.below(3) {
                script = self.spoiled(&script);
            }
        }
        script
    }

    /// The script with something inserted, removed or repeated.
    fn spoiled(&mut self, script: &str) -> String {
        const NOISE: &[&str] = &[
            "'", "\"", "\\", "`", "$", "(", ")", "{", "}", "\n", ";", "&", "|", "<", ">", "#", " ",
            "\\\n", "$(", "${", "((", "))", "<<E\n", "E\n", "[[", "]]", "\t", "*", "=", "!", "~",
            "$'", ";;", "&&", "<(", "esac", "done", "fi", "then", "do", " in ", "time ", "alpha\n",
        ];
        let at = |generator: &mut Self| {
            let places: Vec<_> = script.char_indices().map(|(at, _)| at).collect();
            if places.is_empty() { 0 } else { places[generator.below(places.len())] }
        };
        let (start, end) = (at(self), at(self));
        match self.below(4) {
            0 => format!("{}{}", &script[..start.min(end)], &script[start.max(end)..]),
            1 => {
                let (start, end) = (start.min(end), start.max(end));
                format!("{}{}{}", &script[..end], &script[start..end], &script[end..])
            }
            _ => format!("{}{}{}", &script[..start], self.pick(NOISE), &script[start..]),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = self.command(depth);
        for _ in 0..self.below(3) {
            let joint = self.pick(&["; ", "\n", " && ", " || ", " | ", " & ", ";", "&&", " # x\n"]);
            let next = self.command(depth);
            text = format!("{text}{joint}{next}");
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple(0);
        }
        let deeper = depth - 1;
        let bash = self.shell == Shell::Bash;
        match self.below(if bash { 26 } else { 18 }) {
            0 => format!("( {} )", self.list(deeper)),
            1 => format!("{{ {}; }}", self.list(deeper)),
            2 => format!("if {}; then {}; fi", self.list(deeper), self.list(deeper)),
            3 => format!("if false; then {}; else {}; fi", self.list(deeper), self.list(deeper)),
            4 => format!("for i in {}; do {}; done", self.word(deeper), self.list(deeper)),
            5 => format!(
                "case {} in ({}) {};; *) {};; esac",
                self.word(0),
                self.word(deeper),
                self.list(deeper),
                self.list(deeper)
            ),
            6 => {
                let (name, body) = (self.fresh(), self.list(deeper));
                format!("{name}() {{ {body}; }}; {name}")
            }
            7 => format!("! {}", self.command(deeper)),
            8 => format!("while {}; do {}; break; done", self.list(deeper), self.list(deeper)),
            9 => format!("eval {}", self.quoted(deeper)),
            10 => format!("sh -c {}", self.quoted(deeper)),
            11 => format!("env {}", self.simple(deeper)),
            12 | 13 => {
                let quote = self.pick(&["", "'", "\"", "\\"]);
                let closing = quote.replace('\\', "");
                let (end, body) = (self.fresh(), self.word(deeper));
                let (before, after) = (self.simple(0), self.simple(0));
                format!("{{ {before} <<{quote}{end}{closing}\n{body}\n{end}\n{after}; }}")
            }
            14 => {
                let (end, body) = (self.fresh(), self.list(deeper));
                format!("{{ sh <<'{end}'\n{body}\n{end}\n}}")
            }
            15 => format!("x={}", self.word(deeper)),
            16 => format!("x={} {}", self.word(0), self.simple(deeper)),
            17 => self.simple(deeper),
            18 => format!("[[ {} == {} ]]", self.word(deeper), self.word(deeper)),
            19 => format!("(( {} ))", self.arithmetic(deeper)),
            20 => format!("time {}", self.command(deeper)),
            21 => format!("{} < <({})", self.simple(0), self.list(deeper)),
            22 => format!("a=({} {})", self.word(deeper), self.word(0)),
            23 => format!("bash <<< {}", self.quoted(deeper)),
            24 => format!("coproc {{ {}; }}", self.list(deeper)),
            _ => {
                let (name, body) = (self.fresh(), self.list(deeper));
                format!("function {name} {{ {body}; }}; {name}")
            }
        }
    }

    /// A new name, because a function that calls its own name would never end.
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("f{}", self.names)
    }

    /// A list in quotes, as an argument.
    fn quoted(&mut self, depth: usize) -> String {
        format!("'{}'", self.list(depth).replace('\'', "'\\''"))
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = self.name();
        for _ in 0..self.below(3) {
            text = format!("{text} {}", self.word(depth));
        }
        match self.below(8) {
            0 => format!("{text} > out"),
            1 => format!("{text} 2>&1"),
            2 => format!("> out {text}"),
            _ => text,
        }
    }

    /// The name of a stub, in one of its spellings.
    fn name(&mut self) -> String {
        let name = self.pick(&STUBS);
        let at = 1 + self.below(3);
        let (head, tail) = name.split_at(at);
        match self.below(14) {
            0 => format!("{head}''{tail}"),
            1 => format!("\"{name}\""),
            2 => format!("{head}\\{tail}"),
            3 => format!("{head}\\\n{tail}"),
            4 => format!("'{head}'\"{tail}\""),
            5 => format!("\\{name}"),
            6 if self.shell == Shell::Bash => {
                format!("$'{head}\\x{:02x}{}'", tail.as_bytes()[0], &tail[1..])
            }
            _ => name.to_owned(),
        }
    }

    fn word(&mut self, depth: usize) -> String {
        if depth == 0 {
            let words = [
                "x", "'a; b'", "\"a b\"", "$x", "${x}", "a\\;b", "*", "~", "-n", "\"$@\"", "''",
                "a#b",
            ];
            return self.pick(&words).to_owned();
        }
        let deeper = depth - 1;
        let bash = self.shell == Shell::Bash;
        match self.below(if bash { 16 } else { 11 }) {
            0 => format!("$({})", self.list(deeper)),
            1 => format!("\"$({})\"", self.list(deeper)),
            2 => format!("`{}`", self.list(0).replace(['\\', '`'], "")),
            3 => format!("${{x:-{}}}", self.word(deeper)),
            4 => format!("\"${{x:-$({})}}\"", self.list(deeper)),
            5 => format!("${{x#{}}}", self.word(deeper)),
            6 => format!("$(( {} ))", self.arithmetic(deeper)),
            7 => format!("a{}b", self.word(deeper)),
            8 => format!("'$({})'", self.list(0).replace('\'', "")),
            9 => format!("$( ({}) )", self.list(deeper)),
            10 => format!("$({}\n)", self.list(deeper)),
            11 => format!("<({})", self.list(deeper)),
            12 => format!("${{a[{}]}}", self.arithmetic(deeper)),
            13 => format!("$(({}); {})", self.list(deeper), self.list(deeper)),
            14 => format!("${{x/{}/y}}", self.word(deeper)),
            _ => format!("$'a\\'b'{}", self.word(deeper)),
        }
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        match self.below(4) {
            0 => "1 + 2".to_owned(),
            1 => "x".to_owned(),
            2 => format!("$({}; echo 1)", self.list(depth)),
            _ => "(1 > 0)".to_owned(),
        }
    }
}
