//! Looking a JMESPath expression up in JSON of any size.
//!
//! A document is not loaded. As much of the expression as leads down into it (names, indexes,
//! projections) is followed while it is read; what is not on the way is passed over, and only what
//! the rest of the expression is asked about is held, an element at a time where it is a projection:
//!
//!     results[?ok].name | [0]
//!     └─────┘└────────┘ └──── the rest: needs everything found before it
//!      way      each: one element after the other
//!
//! What has to be held at once is bounded ([`MAX_HELD`]); an expression that needs more is refused.

mod lookup;

use std::ops::Range;

use jmespath::ast::Ast;
use jmespath::{Context, Rcvar, Runtime, interpret};

use crate::error::Error;
use crate::page::{Page, PageRequest, Reader};
use lookup::Lookup;

/// How much memory the values held at once may take, about.
const MAX_HELD: usize = 48 << 20;

/// A path to look up in JSON.
pub struct JsonPath {
    text: String,
    plan: Plan,
    runtime: Runtime,
}

impl JsonPath {
    pub fn new(path: &str) -> Result<Self, Error> {
        let ast = jmespath::parse(path).map_err(|error| Error::Path(error.to_string()))?;
        let mut runtime = Runtime::new();
        runtime.register_builtin_functions();
        Ok(Self { text: path.to_owned(), plan: Plan::new(&ast), runtime })
    }

    fn interpret(&self, value: &Rcvar, ast: &Ast) -> Result<Rcvar, Error> {
        interpret(value, ast, &mut Context::new(&self.text, &self.runtime))
            .map_err(|error| Error::Path(error.to_string()))
    }
}

/// An expression, taken apart by how it can be followed.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    way: Vec<Step>,
    each: Option<Each>,
    rest: Option<Ast>,
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
}

/// A projection: what is done to the elements of an array, or to the values of an object.
#[derive(Debug, PartialEq)]
struct Each {
    values: bool,
    range: Range<usize>,
    stages: Vec<Stage>,
}

#[derive(Debug, PartialEq)]
struct Stage {
    flatten: bool,
    then: Ast,
}

impl Plan {
    fn new(ast: &Ast) -> Self {
        match ast {
            Ast::Identity { .. } => Self::default(),
            Ast::Field { name, .. } => {
                Self { way: vec![Step::Field(name.clone())], ..Self::default() }
            }
            Ast::Index { idx, .. } if *idx >= 0 => {
                Self { way: vec![Step::Index(*idx as usize)], ..Self::default() }
            }
            Ast::Subexpr { lhs, rhs, .. } => Self::new(lhs).then(rhs),
            Ast::Projection { lhs, rhs, .. } => match &**lhs {
                Ast::Flatten { node, .. } => Self::new(node).project(true, rhs),
                Ast::ObjectValues { node, .. } => Self::new(node).values(rhs),
                lhs => match forward(lhs) {
                    Some(range) => Self::default().each(Each { range, ..Each::new(false, rhs) }),
                    None => Self::new(lhs).project(false, rhs),
                },
            },
            other => Self { rest: Some(other.clone()), ..Self::default() },
        }
    }

    fn each(self, each: Each) -> Self {
        Self { each: Some(each), ..self }
    }

    fn then(mut self, next: &Ast) -> Self {
        if self.each.is_some() || self.rest.is_some() {
            return self.with_rest(|rest| match rest {
                Ast::Identity { .. } => next.clone(),
                rest => {
                    Ast::Subexpr { offset: 0, lhs: Box::new(rest), rhs: Box::new(next.clone()) }
                }
            });
        }
        let next = Self::new(next);
        self.way.extend(next.way);
        Self { way: self.way, ..next }
    }

    /// With a projection of the elements found so far, or of what is in them.
    fn project(mut self, flatten: bool, then: &Ast) -> Self {
        match &mut self.each {
            None if self.rest.is_none() => self.each(Each::new(flatten, then)),
            Some(each) if self.rest.is_none() => {
                each.stages.push(Stage { flatten, then: then.clone() });
                self
            }
            _ => self.with_rest(|rest| {
                projection(
                    if flatten { Ast::Flatten { offset: 0, node: Box::new(rest) } } else { rest },
                    then,
                )
            }),
        }
    }

    /// With a projection of an object's values.
    fn values(self, then: &Ast) -> Self {
        if self.each.is_none() && self.rest.is_none() {
            return self.each(Each { values: true, ..Each::new(false, then) });
        }
        let values = |rest| Ast::ObjectValues { offset: 0, node: Box::new(rest) };
        self.with_rest(|rest| projection(values(rest), then))
    }

    fn with_rest(mut self, wrap: impl FnOnce(Ast) -> Ast) -> Self {
        let rest = self.rest.take().unwrap_or(Ast::Identity { offset: 0 });
        Self { rest: Some(wrap(rest)), ..self }
    }
}

impl Each {
    fn new(flatten: bool, then: &Ast) -> Self {
        let stages = vec![Stage { flatten, then: then.clone() }];
        Self { values: false, range: 0..usize::MAX, stages }
    }
}

fn projection(lhs: Ast, rhs: &Ast) -> Ast {
    Ast::Projection { offset: 0, lhs: Box::new(lhs), rhs: Box::new(rhs.clone()) }
}

/// The range of a slice that can be taken on the way from the first element to the last.
fn forward(ast: &Ast) -> Option<Range<usize>> {
    let Ast::Slice { start, stop, step: 1, .. } = ast else { return None };
    let start = usize::try_from(start.unwrap_or(0)).ok()?;
    let stop = stop.map_or(Ok(usize::MAX), usize::try_from).ok()?;
    Some(start..stop)
}

impl Reader {
    /// A page of what a path finds in the output's JSON document, or in each of them if there are
    /// several, a line a document. Offsets count in what was found.
    pub fn json_path(&self, path: &JsonPath, request: PageRequest) -> Result<Page, Error> {
        // One at a time, in all: each may hold that much.
        let _turn = self.lookup_turn();
        let page = Lookup::new(path, request, MAX_HELD).through(self)?;
        Ok(Page { running: self.is_running(), ..page })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::output::Output;
    use crate::page::Data;
    use crate::render::View;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    const LIMIT: usize = 1 << 20;

    fn look_up(pieces: impl IntoIterator<Item = Vec<u8>>, path: &str) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
        let output = Output::new(spill.account().quota(None));
        for piece in pieces {
            output.append(Stream::Stdout, &piece);
        }
        output.finish();
        let reader = Reader::new(output, Stream::Stdout, View::default());
        let request = PageRequest::bytes(0, 1 << 20);
        let path = JsonPath::new(path)?;
        match Lookup::new(&path, request, LIMIT).through(&reader)?.data {
            Data::Text(text) => Ok(text),
            Data::Binary(_) => panic!("text"),
        }
    }

    fn found(text: &str, path: &str) -> String {
        look_up([text.as_bytes().to_vec()], path).unwrap()
    }

    #[test]
    fn a_path_is_looked_up_in_one_document_or_in_each() {
        assert_eq!(found(r#"{"a": [{"b": 1}, {"b": 2}]}"#, "a[].b"), "[1,2]\n");
        assert_eq!(found("{\"a\":1}\n{\"a\":2}\n", "a"), "1\n2\n");
        assert_eq!(found("\x1b[32m{\"a\":\x1b[0m1}\r\n", "a"), "1\n");
        assert_eq!(found("  \n", "a"), "");
    }

    #[test]
    fn what_is_no_json_or_no_path_is_explained() {
        let no_json = look_up([b"no json".to_vec()], "a");
        assert!(matches!(no_json, Err(Error::NoJson(_))));
        assert!(matches!(look_up([b"{}".to_vec()], "a[[["), Err(Error::Path(_))));
        assert!(matches!(look_up([b"{}".to_vec()], "length(`1`)"), Err(Error::Path(_))));
    }

    /// A document far longer than what may be held.
    fn long_document() -> impl Iterator<Item = Vec<u8>> {
        let row = |n: usize| format!(r#"{{"id":{n},"text":"{}","tags":[1,2]}},"#, "x".repeat(100));
        let rows = (0..20).map(move |k| (k * 1000..(k + 1) * 1000).map(row).collect::<String>());
        let head = [br#"{"skip":{"a":[1,{}]},"rows":["#.to_vec()];
        let tail = [br#"{"id":-1}],"after":{"deep":[7]}}"#.to_vec()];
        head.into_iter().chain(rows.map(String::into_bytes)).chain(tail)
    }

    #[test]
    fn a_document_longer_than_memory_is_followed_to_what_is_wanted() {
        for (path, expected) in [
            ("after.deep[0]", "7\n"),
            ("rows[12345].id", "12345\n"),
            ("rows[2:4].id", "[2,3]\n"),
            ("rows[?id==`7777`].[id, tags]", "[[7777,[1,2]]]\n"),
            ("rows[?id<`2`].tags[] | sum(@)", "6.0\n"),
            ("rows[?id==`5`] | [0].id", "5\n"),
            ("nothing[*].id", "null\n"),
        ] {
            assert_eq!(
                look_up(long_document(), path).unwrap_or_else(|error| error.chain()),
                expected
            );
        }
    }

    #[test]
    fn what_would_have_to_be_held_as_a_whole_is_refused_when_it_is_too_large() {
        for path in ["sort_by(rows, &id)[0]", "rows[-1]", "@", "rows[*].text | [0]"] {
            let result = look_up(long_document(), path);
            assert!(matches!(result, Err(Error::DocumentTooLong { .. })), "{path}: {result:?}");
        }
        let string =
            || [b"{\"a\":\"".to_vec()].into_iter().chain((0..2).map(|_| vec![b'x'; 1 << 20]));
        let string = string().chain([b"\",\"b\":1}".to_vec()]);
        let (first, second): (Vec<_>, Vec<_>) = string.map(|piece| (piece.clone(), piece)).unzip();
        assert!(matches!(look_up(first, "a"), Err(Error::DocumentTooLong { .. })));
        assert_eq!(look_up(second, "b").unwrap(), "1\n");
    }

    proptest! {
        #[test]
        fn following_a_path_finds_what_looking_at_the_whole_document_finds(
            document in documents(),
            path in prop::sample::select(&PATHS),
        ) {
            let text = document.to_string();
            let expected = jmespath::compile(path).unwrap().search(&document);
            match (look_up([text.into_bytes()], path), expected) {
                (Ok(found), Ok(expected)) => prop_assert_eq!(found, format!("{expected}\n")),
                (found, expected) => prop_assert!(found.is_err() && expected.is_err()),
            }
        }
    }

    const PATHS: [&str; 26] = [
        "@",
        "a",
        "a.b",
        "a[0]",
        "a[-1]",
        "[1].a",
        "a[*]",
        "a[*].b",
        "a[]",
        "a[].b[]",
        "[][]",
        "[*][*]",
        "a[*].b[*].a",
        "a.*",
        "*.a",
        "*[]",
        "*.*",
        "a[1:]",
        "[:2].a",
        "[::-1]",
        "a[?b]",
        "[?a==`1`].b | [0]",
        "a[].b | length(@)",
        "length(@)",
        "{x: a, y: b[0]}",
        "(a || b)[*].a.*[]",
    ];

    fn documents() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            (0..3_i64).prop_map(Into::into),
            "[a-z\"\u{e4}]{0,3}".prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
