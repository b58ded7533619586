//! Tables of places that cannot be used.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use support::{MCPZ, open_folder};

#[test]
fn settings_that_make_no_sense_are_refused_at_the_start() {
    for (table, complaint) in [
        ("[places.x]\nhost = \"a\"", "[places.x] has no kind"),
        ("[places.x]\nkind = \"ssh\"", "[places.x] has no host, which its kind needs"),
        (
            "[places.x]\nkind = \"process\"\nhost = \"a\"",
            "host in [places.x] does not belong to its kind",
        ),
        ("[places.x]\nkind = \"ssh\"\nhost = \"-oX=y\"", "`-oX=y` is not a host"),
        (
            "[places.x]\nkind = \"process\"\nmax = 0",
            "max in [places.x] is 0, but must be at least 1",
        ),
        ("[shell_tool]\nplace = \"nowhere\"", "there is no place `nowhere`"),
        (
            "[shell_tool]\nplace = \"docker:debian\"",
            "`docker:debian` is not a place; write container:IMAGE",
        ),
        ("[places.x]\nkind = \"kubernetes\"", "[places.x] has no image, which its kind needs"),
        (
            "[places.x]\nkind = \"kubernetes\"\nimage = \"a\"\npod = \"b\"",
            "[places.x] has an image and a pod; leave out one of them",
        ),
        (
            "[places.x]\nkind = \"kubernetes\"\nimage = \"a\"\ncontainer = \"b\"",
            "[places.x] has no pod, which its kind needs",
        ),
        (
            "[places.x]\nkind = \"kubernetes\"\npod = \"a\"\nread_only = true",
            "read_only in [places.x] is for pods that are made",
        ),
        (
            "[places.x]\nkind = \"kubernetes\"\nimage = \"a\"\nuser = \"dev\"",
            "`dev` is not a user of a pod; write its number",
        ),
        (
            "[places.x]\nkind = \"kubernetes\"\nimage = \"a\"\nmounts = [\"a:b\"]",
            "`a:b` is not a mount of a pod",
        ),
        (
            "[places.x]\nkind = \"kubernetes\"\nimage = \"a\"\ndeadline = 0",
            "deadline in [places.x] is 0, but must be at least 1",
        ),
    ] {
        let folder = open_folder();
        let file = folder.path().join("config.toml");
        std::fs::write(&file, table).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--config"]).arg(file);
        let said = support::sandbox::refused(&mut command);
        assert!(said.contains(complaint), "{said}");
    }
}
