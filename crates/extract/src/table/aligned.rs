//! Columns that are aligned below their header, as `ps`, `df`, `docker ps` and `kubectl get` print them.
//!
//! A column's cells begin or end where its name does, and between columns every line has a space. Where names are two
//! spaces apart, a single space belongs to a name or a cell; otherwise gaps are where no line has a letter.

use super::{Row, SAMPLE, distinct, row};

pub(super) fn rows(lines: &[&str]) -> Option<Vec<Row>> {
    let lines: Vec<Vec<char>> =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| expand(line)).collect();
    let (header, body) = lines.split_first()?;
    if body.is_empty() {
        return None;
    }
    let sample = &body[..body.len().min(SAMPLE)];
    let (names, rows): (Vec<String>, Vec<Row>) = if let Some(names) = words_only(header, sample) {
        let rows = body.iter().map(|line| words(&names, line)).collect();
        (names, rows)
    } else {
        let starts = columns(header, sample)?;
        let cells = |line: &Vec<char>| -> Vec<String> {
            (0..starts.len()).map(|at| slice(line, &starts, at)).collect()
        };
        let names = distinct(cells(header).into_iter());
        let rows = body
            .iter()
            .map(|line| row(&names, cells(line).iter().map(|cell| cell.as_str())))
            .collect();
        (names, rows)
    };
    let is_row = names.iter().any(|name| is_cell(name, &rows));
    (!is_row).then_some(rows)
}

/// Whether a name is only the first cell of its column, such as the hash or the date of a commit: it has a digit, and
/// most cells have one as well and are as long.
fn is_cell(name: &str, rows: &[Row]) -> bool {
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let is_alike = |row: &&Row| {
        let cell = row.get(name).and_then(|cell| cell.as_str()).unwrap_or_default();
        cell.len() == name.len() && has_digit(cell)
    };
    has_digit(name) && rows.iter().filter(is_alike).count() * 2 > rows.len()
}

/// The names, if a cell that is too long for its column has pushed others aside, as `ps` does: then columns cannot be
/// told by where they are, but every line has as many words as there are names.
fn words_only(header: &[char], body: &[Vec<char>]) -> Option<Vec<String>> {
    let header_text: String = header.iter().collect();
    let names: Vec<String> = distinct(header_text.split_whitespace().map(str::to_owned));
    let count =
        |line: &Vec<char>| line.split(|c| *c == ' ').filter(|word| !word.is_empty()).count();
    if body.iter().any(|line| count(line) < names.len()) {
        return None;
    }
    let starts = columns(header, body)?;
    let broken = (0..starts.len()).any(|at| slice(header, &starts, at).contains("  "));
    let narrow = starts
        .windows(2)
        .any(|pair| header.get(pair[1].wrapping_sub(2)).is_some_and(|c| *c != ' '));
    (broken || narrow && starts.len() < names.len()).then_some(names)
}

/// A row by words; the last cell has the rest of the line.
fn words(names: &[String], line: &[char]) -> Row {
    let text: String = line.iter().collect();
    let mut rest = text.trim();
    let mut cells = Vec::new();
    for _ in 1..names.len() {
        let (cell, after) = rest.split_once(' ').unwrap_or((rest, ""));
        cells.push(cell);
        rest = after.trim_start();
    }
    row(names, cells.into_iter().chain([rest]))
}

/// Tabs become spaces, as a terminal shows them.
fn expand(line: &str) -> Vec<char> {
    let mut chars = Vec::new();
    for c in line.trim_end().chars() {
        if c == '\t' {
            chars.extend(std::iter::repeat_n(' ', 8 - chars.len() % 8));
        } else {
            chars.push(c);
        }
    }
    chars
}

/// Where columns begin: after each place that is blank in the header and in all lines.
fn columns(header: &[char], body: &[Vec<char>]) -> Option<Vec<usize>> {
    let width = header.len();
    let blank = |at: usize| {
        let is_blank = |line: &[char]| line.get(at).is_none_or(|c| *c == ' ');
        is_blank(header) && body.iter().all(|line| is_blank(line))
    };
    let mut starts = vec![0];
    for at in 1..width {
        if blank(at - 1) && !blank(at) {
            starts.push(at);
        }
    }
    if starts.len() > 1 && header[0] == ' ' && starts[1] <= first(header)? {
        starts.remove(0);
    }
    // A blank place inside a name's column is a gap only if the header has a name in each part.
    let mut merged: Vec<usize> = Vec::new();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(width).min(width);
        let named = header[start.min(width)..end].iter().any(|c| *c != ' ');
        if named || merged.is_empty() {
            merged.push(start);
        }
    }
    let merged = join_names(header, body, merged);
    let plausible = merged.len() > 1
        && body.iter().filter(|line| filled(line, &merged) > 1).count() * 2 > body.len();
    plausible.then_some(merged)
}

fn first(header: &[char]) -> Option<usize> {
    header.iter().position(|c| *c != ' ')
}

/// `Mounted on` is one name: only a single space is between, and the second word's column is never filled.
fn join_names(header: &[char], body: &[Vec<char>], starts: Vec<usize>) -> Vec<usize> {
    let wide =
        header.windows(3).filter(|gap| gap[0] != ' ' && gap[1] == ' ' && gap[2] == ' ').count() > 0;
    let mut kept: Vec<usize> = Vec::new();
    for &start in &starts {
        let single =
            start >= 2 && header.get(start).is_some_and(|c| *c != ' ') && header[start - 2] != ' ';
        let filled = body
            .iter()
            .any(|line| line.get(start..).is_some_and(|rest| rest.iter().any(|c| *c != ' ')));
        if !kept.is_empty() && wide && single && !filled {
            continue;
        }
        kept.push(start);
    }
    kept
}

fn filled(line: &[char], starts: &[usize]) -> usize {
    (0..starts.len()).filter(|&at| !slice(line, starts, at).is_empty()).count()
}

/// One cell; the last goes to the end of its line.
fn slice(line: &[char], starts: &[usize], at: usize) -> String {
    let from = if at == 0 { 0 } else { starts[at] }.min(line.len());
    let to = starts.get(at + 1).copied().unwrap_or(line.len()).min(line.len());
    line[from..to.max(from)].iter().collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        rows(&lines)
            .unwrap_or_default()
            .iter()
            .map(|row| serde_json::to_string(row).unwrap())
            .collect()
    }

    #[test]
    fn names_and_cells_may_have_spaces_and_cells_may_be_empty() {
        let docker = "\
CONTAINER ID   IMAGE     COMMAND                  CREATED       STATUS       PORTS     NAMES
0123456789ab   nginx     \"/docker-entrypoint.…\"   3 hours ago   Up 3 hours   80/tcp    web
ba9876543210   redis     \"redis-server\"           2 days ago    Up 2 days              cache one
";
        let rows = read(docker);
        let first = r#"{"CONTAINER ID":"0123456789ab","IMAGE":"nginx","COMMAND":"\"/docker-"#;
        assert!(rows[0].starts_with(first), "{}", rows[0]);
        let second =
            r#""CREATED":"2 days ago","STATUS":"Up 2 days","PORTS":"","NAMES":"cache one"}"#;
        assert!(rows[1].ends_with(second), "{}", rows[1]);
    }

    #[test]
    fn columns_may_be_aligned_to_the_right() {
        let ps = "    PID TTY          TIME CMD\n      1 ?        00:00:01 init -x\n  12345 pts/0    00:00:00 bash\n";
        assert_eq!(read(ps)[0], r#"{"PID":"1","TTY":"?","TIME":"00:00:01","CMD":"init -x"}"#);
        assert_eq!(read(ps)[1], r#"{"PID":"12345","TTY":"pts/0","TIME":"00:00:00","CMD":"bash"}"#);
    }

    #[test]
    fn a_cell_too_long_for_its_column_does_not_mix_columns() {
        let ps = "USER   PID    VSZ   RSS COMMAND\nroot     1  39208 10628 /init\nme    1234 123456789012 5 sh -c ls\n";
        let row =
            r#"{"USER":"me","PID":"1234","VSZ":"123456789012","RSS":"5","COMMAND":"sh -c ls"}"#;
        assert_eq!(read(ps)[1], row);
    }

    #[test]
    fn lines_that_are_all_alike_have_no_header() {
        let log = "9f1c2ab  2026-01-02  Ada    parse numbers\n1d3e4f5  2026-01-03  Grace  count lines\n\
                   7a8b9c0  2026-01-04  Linus  merge\n";
        assert_eq!(read(log), Vec::<String>::new());
        let dated = "NAME   2026-01-02\nada    12\ngrace  7\n";
        assert_eq!(read(dated)[0], r#"{"NAME":"ada","2026-01-02":"12"}"#);
    }

    #[test]
    fn prose_is_no_table() {
        let prose = "This is a sentence.\nAnd another one, which is longer.\nShort.\n";
        assert_eq!(read(prose), Vec::<String>::new());
    }
}
