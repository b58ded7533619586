//! Harmless arguments of modules that Python runs with `-m`.

use super::table::{NOTHING, Operands, Row};
use crate::names::Names;

const MODULES: &[Row] = &[
    Row {
        programs: Names("unittest"),
        flags: Names("-v -q -f -b -c --verbose --quiet --failfast --buffer --catch --locals"),
        valued: Names("-k"),
        with_operand: Names("-s -p"),
        known: Names("discover"),
        operands: Operands::TestNames,
        ..NOTHING
    },
    Row {
        programs: Names("http.server"),
        valued: Names("-b -d --bind --directory"),
        operands: Operands::Numbers,
        ..NOTHING
    },
    Row {
        programs: Names("venv json.tool py_compile compileall"),
        flags: Names(
            "-q --clear --upgrade --upgrade-deps --system-site-packages --without-pip --sort-keys",
        ),
        operands: Operands::Any,
        ..NOTHING
    },
];

/// What may be added to a call of a module.
pub fn module_row(module: &str) -> Option<&'static Row> {
    MODULES.iter().find(|row| row.programs.has(module))
}
