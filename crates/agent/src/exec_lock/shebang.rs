//! The first line of a script, as the kernel reads it.

/// How much of a file the kernel reads to find its interpreter.
pub const HEAD: usize = 256;

/// The interpreter and its argument, if the file begins with `#!`, as the kernel finds them (`fs/binfmt_script.c`).
/// Only blanks and tabs separate, and without a newline what it has read counts, but for the last byte.
pub fn shebang(head: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    const MOST: usize = HEAD - 1 - 2;
    let is_blank = |byte: &u8| [b' ', b'\t'].contains(byte);
    let text = head.strip_prefix(b"#!")?;
    let trimmed =
        |line: &'_ [u8]| line.iter().rposition(|byte| !is_blank(byte)).map_or(0, |at| at + 1);
    let (line, cut) = match text.iter().position(|byte| [b'\n', 0].contains(byte)) {
        Some(end) if text[end] == b'\n' => (&text[..trimmed(&text[..end])], false),
        Some(end) if end < MOST => (&text[..end], false),
        None if text.len() < MOST => (text, false),
        _ => (&text[..trimmed(&text[..MOST])], true),
    };
    // What follows a blank may be cut.
    let cut = cut && line.len() == MOST;
    let line = &line[line.iter().position(|byte| !is_blank(byte))?..];
    let end = match line.iter().position(is_blank) {
        Some(end) => end,
        // The kernel does not guess how the name goes on.
        None if cut => return None,
        None => line.len(),
    };
    let rest = &line[end..];
    let argument = rest.iter().position(|byte| !is_blank(byte)).map(|at| &rest[at..]);
    Some((&line[..end], argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter_and_one_argument() {
        let parsed = |text: &'static str| {
            shebang(text.as_bytes()).map(|(path, argument)| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(path), argument.map(text))
            })
        };
        let some = |path: &str, argument: Option<&str>| {
            Some((path.to_owned(), argument.map(str::to_owned)))
        };
        assert_eq!(parsed("#!/bin/sh\nls\n"), some("/bin/sh", None));
        assert_eq!(parsed("#! /usr/bin/env -S a b \n"), some("/usr/bin/env", Some("-S a b")));
        assert_eq!(parsed("#!\t/bin/sh"), some("/bin/sh", None));
        assert_eq!(parsed("#!/bin/sh\r\n"), some("/bin/sh\r", None));
        assert_eq!(parsed("#!/bin/sh x\r \n"), some("/bin/sh", Some("x\r")));
        assert_eq!(parsed("#!/bin/sh x\0y\n"), some("/bin/sh", Some("x")));
        assert_eq!(parsed("#!\n"), None);
        assert_eq!(parsed("\x7fELF"), None);
    }

    #[test]
    fn a_first_line_without_an_end_is_what_the_kernel_reads_of_it() {
        let long = format!("#!/bin/sh {}", "x".repeat(HEAD));
        let (path, argument) = shebang(&long.as_bytes()[..HEAD]).unwrap();
        assert_eq!(
            (path, argument.unwrap().len()),
            (&b"/bin/sh"[..], HEAD - 1 - "#!/bin/sh ".len())
        );
        let name = format!("#!/{}", "x".repeat(HEAD));
        assert_eq!(shebang(&name.as_bytes()[..HEAD]), None);
        let whole = format!("#!{:>253}\n", "/bin/sh");
        assert_eq!(shebang(whole.as_bytes()), Some((&b"/bin/sh"[..], None)));
    }
}
