//! Harmless arguments of managers of packages and of the environments in which programs run.
//!
//! Few: almost all of their options choose an interpreter, an environment or a source of packages, which then runs.

use super::row::{NOTHING, Operands, Row};
use crate::names::Names;

const FLAGS: Names = Names("-q -v --quiet --verbose --version --help");

/// Runs and installs applications, each in an environment of its own.
pub const PIPX: Row =
    Row { programs: Names("pipx"), flags: FLAGS, hands_over: &[(Names("run"), 2)], ..NOTHING };

pub const UV: Row = Row {
    programs: Names("uv"),
    flags: Names(
        "-q -v --quiet --verbose --offline --frozen --locked --no-sync --no-dev --dev --all-extras --all-groups \
         --check --outdated --version --help",
    ),
    valued: Names("--extra --group"),
    risky: Names("-p --python --with --env-file --package --directory"),
    operands: Operands::OfSubcommand,
    groups: Names("pip tool"),
    known: Names("add remove pip-install pip-uninstall"),
    hands_over: &[(Names("run"), 2), (Names("tool-run"), 3)],
    ..NOTHING
};

/// Those with nothing else in common.
pub const OTHERS: Row = Row {
    programs: Names("poetry pdm hatch rye conda mamba micromamba"),
    flags: FLAGS,
    hands_over: &[(Names("run exec"), 2)],
    ..NOTHING
};

/// It takes an option behind `exec` for the program.
pub const BUNDLE: Row =
    Row { programs: Names("bundle bundler"), hands_over: &[(Names("exec"), 2)], ..NOTHING };
