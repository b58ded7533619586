//! Harmless arguments of modules that Python runs with `-m`.

use super::row::{NOTHING, Operands, Row};
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
        programs: Names("py_compile compileall"),
        flags: Names("-q"),
        operands: Operands::Any,
        ..NOTHING
    },
    // It writes to a second one.
    Row {
        programs: Names("json.tool"),
        flags: Names("--sort-keys --no-ensure-ascii --json-lines --compact"),
        operands: Operands::One,
        ..NOTHING
    },
    // It runs the python that is in the folder already.
    Row {
        programs: Names("venv"),
        flags: Names("--clear --system-site-packages --without-pip"),
        ..NOTHING
    },
];

/// What may be added to a call of a module.
pub fn module_row(module: &str) -> Option<&'static Row> {
    MODULES.iter().find(|row| row.programs.has(module))
}
