//! Looks up a JMESPath expression in JSON of any size.
//!
//! The document is never loaded as a whole. The part of the expression that leads down into it (names, indexes,
//! projections) is followed while the document is read, and everything else is skipped. Only the values that the
//! rest of the expression needs are held in memory; of a projection, one element at a time:
//!
//!     results[?ok].name | [0]
//!     └─────┘└────────┘ └──── rest: needs everything found before it
//!      steps  projection: one element after the other
//!
//! The values held at once are limited ([`MAX_HELD`]). An expression that needs more is refused.

mod lookup;

use std::ops::Range;

use jmespath::ast::Ast;
use jmespath::{Context, Rcvar, Runtime, interpret};

use crate::error::Error;
use crate::page::{Page, PageRequest, Reader};
use lookup::Lookup;

/// The approximate limit for the memory that values take up at once.
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

    /// What it finds in a value.
    pub fn find_in(&self, value: &serde_json::Value) -> Result<serde_json::Value, Error> {
        let failed = |error: jmespath::JmespathError| Error::Path(error.to_string());
        let ast = jmespath::parse(&self.text).map_err(failed)?;
        let value = jmespath::Variable::from_json(&value.to_string()).map_err(Error::Path)?;
        let found = self.interpret(&Rcvar::new(value), &ast)?;
        serde_json::to_value(&*found).map_err(|error| Error::Path(error.to_string()))
    }

    fn interpret(&self, value: &Rcvar, ast: &Ast) -> Result<Rcvar, Error> {
        interpret(value, ast, &mut Context::new(&self.text, &self.runtime))
            .map_err(|error| Error::Path(error.to_string()))
    }
}

/// An expression, split by how each part can be followed.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    steps: Vec<Step>,
    projection: Option<Projection>,
    rest: Option<Ast>,
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
}

/// What is done to each element of an array, or to each value of an object.
#[derive(Debug, PartialEq)]
struct Projection {
    of_values: bool,
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
                Self { steps: vec![Step::Field(name.clone())], ..Self::default() }
            }
            Ast::Index { idx, .. } if *idx >= 0 => {
                Self { steps: vec![Step::Index(*idx as usize)], ..Self::default() }
            }
            Ast::Subexpr { lhs, rhs, .. } => Self::new(lhs).then(rhs),
            Ast::Projection { lhs, rhs, .. } => match &**lhs {
                Ast::Flatten { node, .. } => Self::new(node).project(true, rhs),
                Ast::ObjectValues { node, .. } => Self::new(node).values(rhs),
                lhs => match forward_range(lhs) {
                    Some(range) => Self::default()
                        .with_projection(Projection { range, ..Projection::new(false, rhs) }),
                    None => Self::new(lhs).project(false, rhs),
                },
            },
            other => Self { rest: Some(other.clone()), ..Self::default() },
        }
    }

    fn with_projection(self, projection: Projection) -> Self {
        Self { projection: Some(projection), ..self }
    }

    fn then(mut self, next: &Ast) -> Self {
        if self.projection.is_some() || self.rest.is_some() {
            return self.with_rest(|rest| match rest {
                Ast::Identity { .. } => next.clone(),
                rest => {
                    Ast::Subexpr { offset: 0, lhs: Box::new(rest), rhs: Box::new(next.clone()) }
                }
            });
        }
        let next = Self::new(next);
        self.steps.extend(next.steps);
        Self { steps: self.steps, ..next }
    }

    /// Adds a projection of the elements found so far, or of the elements in those.
    fn project(mut self, flatten: bool, then: &Ast) -> Self {
        match &mut self.projection {
            None if self.rest.is_none() => self.with_projection(Projection::new(flatten, then)),
            Some(projection) if self.rest.is_none() => {
                projection.stages.push(Stage { flatten, then: then.clone() });
                self
            }
            _ => self.with_rest(|rest| {
                projection_ast(
                    if flatten { Ast::Flatten { offset: 0, node: Box::new(rest) } } else { rest },
                    then,
                )
            }),
        }
    }

    /// Adds a projection of an object's values.
    fn values(self, then: &Ast) -> Self {
        if self.projection.is_none() && self.rest.is_none() {
            return self
                .with_projection(Projection { of_values: true, ..Projection::new(false, then) });
        }
        let values = |rest| Ast::ObjectValues { offset: 0, node: Box::new(rest) };
        self.with_rest(|rest| projection_ast(values(rest), then))
    }

    fn with_rest(mut self, wrap: impl FnOnce(Ast) -> Ast) -> Self {
        let rest = self.rest.take().unwrap_or(Ast::Identity { offset: 0 });
        Self { rest: Some(wrap(rest)), ..self }
    }
}

impl Projection {
    fn new(flatten: bool, then: &Ast) -> Self {
        let stages = vec![Stage { flatten, then: then.clone() }];
        Self { of_values: false, range: 0..usize::MAX, stages }
    }
}

fn projection_ast(lhs: Ast, rhs: &Ast) -> Ast {
    Ast::Projection { offset: 0, lhs: Box::new(lhs), rhs: Box::new(rhs.clone()) }
}

/// The range of a slice, if it can be taken while reading from the first element to the last.
fn forward_range(ast: &Ast) -> Option<Range<usize>> {
    let Ast::Slice { start, stop, step: 1, .. } = ast else { return None };
    let start = usize::try_from(start.unwrap_or(0)).ok()?;
    let stop = stop.map_or(Ok(usize::MAX), usize::try_from).ok()?;
    Some(start..stop)
}

impl Reader {
    /// A page of what a path finds in the output's JSON document or, if there are several, in each of them, one per
    /// line. Offsets count in what was found.
    pub fn json_path(&self, path: &JsonPath, request: PageRequest) -> Result<Page, Error> {
        // One lookup at a time on the whole server: each may hold that much.
        let _turn = self.lookup_turn();
        let page = Lookup::new(path, request, MAX_HELD).run(self)?;
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
    use crate::render::Rendering;
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
        let reader = Reader::new(output, Stream::Stdout, Rendering::default());
        let request = PageRequest::bytes(0, 1 << 20);
        let path = JsonPath::new(path)?;
        match Lookup::new(&path, request, LIMIT).run(&reader)?.data {
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
    fn invalid_json_and_invalid_paths_are_errors() {
        let no_json = look_up([b"no json".to_vec()], "a");
        assert!(matches!(no_json, Err(Error::NoJson(_))));
        assert!(matches!(look_up([b"{}".to_vec()], "a[[["), Err(Error::Path(_))));
        assert!(matches!(look_up([b"{}".to_vec()], "length(`1`)"), Err(Error::Path(_))));
    }

    /// A document much longer than what may be held.
    fn long_document() -> impl Iterator<Item = Vec<u8>> {
        let row = |n: usize| format!(r#"{{"id":{n},"text":"{}","tags":[1,2]}},"#, "x".repeat(100));
        let rows = (0..20).map(move |k| (k * 1000..(k + 1) * 1000).map(row).collect::<String>());
        let head = [br#"{"skip":{"a":[1,{}]},"rows":["#.to_vec()];
        let tail = [br#"{"id":-1}],"after":{"deep":[7]}}"#.to_vec()];
        head.into_iter().chain(rows.map(String::into_bytes)).chain(tail)
    }

    #[test]
    fn a_path_is_followed_in_a_document_that_does_not_fit_in_memory() {
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
    fn an_expression_that_needs_too_much_memory_is_refused() {
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
        fn streaming_finds_what_loading_the_whole_document_finds(
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
