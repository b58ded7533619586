//! The first line of a script, as the kernel reads it.

/// How every script begins.
pub const MAGIC: &[u8] = b"#!";

/// How much of a file the kernel reads to find its interpreter.
pub const HEAD: usize = 256;

/// An interpreter and its argument.
type Named<'a> = (&'a [u8], Option<&'a [u8]>);

/// The interpreter and its argument, if the file begins with `#!` and names one, as the kernel finds them
/// (`fs/binfmt_script.c`). `head` is what it has read, with zeros behind the end of a short file.
pub fn shebang(head: &[u8; HEAD]) -> Option<Named<'_>> {
    head.starts_with(MAGIC).then(|| named(head)).flatten()
}

fn named(head: &[u8; HEAD]) -> Option<Named<'_>> {
    const BEGIN: usize = MAGIC.len();
    const LAST: usize = HEAD - 1;
    let is_blank = |byte: u8| [b' ', b'\t'].contains(&byte);
    let next = |from: usize, last: usize, is_wanted: &dyn Fn(u8) -> bool| {
        (from..=last).find(|at| is_wanted(head[*at]))
    };
    let non_blank = |from, last| next(from, last, &|byte| !is_blank(byte));
    let terminator = |from, last| next(from, last, &|byte| is_blank(byte) || byte == 0);
    let mut end = match head.iter().position(|byte| [b'\n', 0].contains(byte)) {
        Some(end) if head[end] == b'\n' => end,
        // Without an end of the line, the name must have one: the kernel does not guess how it goes on.
        _ => terminator(non_blank(BEGIN, LAST)?, LAST).map(|_| LAST)?,
    };
    while is_blank(head[end - 1]) {
        end -= 1;
    }
    let name = non_blank(BEGIN, end).filter(|at| *at != end)?;
    let separator = terminator(name, end).filter(|at| head[*at] != 0);
    let argument = separator.and_then(|at| non_blank(at, end));
    let text = |from: usize, end: usize| {
        let text = &head[from..end];
        text.iter().position(|byte| *byte == 0).map_or(text, |end| &text[..end])
    };
    let is_separated = argument.and(separator);
    Some((text(name, is_separated.unwrap_or(end)), argument.map(|at| text(at, end))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found, as text.
    type Parsed = Option<(String, Option<String>)>;

    fn parsed(text: &[u8]) -> Parsed {
        let mut head = [0; HEAD];
        let length = text.len().min(HEAD);
        head[..length].copy_from_slice(&text[..length]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        shebang(&head).map(|(path, argument)| (text(path), argument.map(text)))
    }

    fn names(path: &str, argument: Option<&str>) -> Parsed {
        Some((path.to_owned(), argument.map(str::to_owned)))
    }

    const NOTHING: Parsed = None;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter_and_one_argument() {
        assert_eq!(parsed(b"#!/bin/sh\nls\n"), names("/bin/sh", None));
        assert_eq!(parsed(b"#! /usr/bin/env -S a b \n"), names("/usr/bin/env", Some("-S a b")));
        assert_eq!(parsed(b"#!\t/bin/sh"), names("/bin/sh", None));
        assert_eq!(parsed(b"#!/bin/sh\r\n"), names("/bin/sh\r", None));
        assert_eq!(parsed(b"#!/bin/sh x\r \n"), names("/bin/sh", Some("x\r")));
        assert_eq!(parsed(b"#!/bin/sh x\0y\n"), names("/bin/sh", Some("x")));
        assert_eq!(parsed(b"#!/bin/sh\0y\n"), names("/bin/sh", None));
        assert_eq!(parsed(b"\x7fELF"), NOTHING);
        assert_eq!(parsed(b"\n"), NOTHING);
        assert_eq!(parsed(b""), NOTHING);
        assert_eq!(parsed(b"#!\n"), NOTHING);
        assert_eq!(parsed(b"#! \t \n/bin/sh\n"), NOTHING);
    }

    #[test]
    fn a_first_line_without_an_end_is_what_the_kernel_reads_of_it() {
        let long = format!("#!/bin/sh {}", "x".repeat(HEAD));
        let argument = "x".repeat(HEAD - 1 - "#!/bin/sh ".len());
        assert_eq!(parsed(long.as_bytes()), names("/bin/sh", Some(&argument)));
        assert_eq!(parsed(format!("#!/{}", "x".repeat(HEAD)).as_bytes()), NOTHING);
        assert_eq!(parsed(format!("#!{}", " ".repeat(HEAD)).as_bytes()), NOTHING);
        // The last byte that the kernel reads may be the one that ends the name, and so may the end of the file.
        for end in ["\n", " x\n", "\tx\n", "\0x\n", ""] {
            let whole = format!("#!{:>253}{end}", "/bin/sh");
            assert_eq!(parsed(whole.as_bytes()), names("/bin/sh", None), "{end:?}");
        }
        assert_eq!(parsed(format!("#!{:>253}x\n", "/bin/sh").as_bytes()), NOTHING);
        assert_eq!(parsed(format!("#!{:>254}\n", "/bin/sh").as_bytes()), NOTHING);
    }
}
