//! What is packaged fits the program: versions, flags, what is promised of a container.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const MCPZ: &str = env!("CARGO_BIN_EXE_mcpz");
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

fn document(path: &str) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

/// The list that an instruction of the Dockerfile ends with.
fn instruction(name: &str) -> Value {
    let text = text("Dockerfile");
    let line = text.lines().rfind(|line| line.starts_with(name)).unwrap();
    serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap()
}

#[test]
fn every_file_is_of_this_version() {
    assert_eq!(document("packaging/mcpb/manifest.json")["version"], VERSION);
    let server = document("packaging/server.json");
    assert_eq!(server["version"], VERSION);
    for package in server["packages"].as_array().unwrap() {
        assert!(package["identifier"].as_str().unwrap().contains(VERSION), "{package}");
        assert!(package.get("version").is_none_or(|version| version == VERSION), "{package}");
    }
    for manifest in ["packaging/kubernetes.yaml", "packaging/kubernetes-pods.yaml"] {
        assert!(text(manifest).contains(&format!("image: mcpz:{VERSION}\n")), "{manifest}");
    }
    let image = format!("image = \"mcpz:{VERSION}\"\n");
    assert!(text("packaging/kubernetes-pods.toml").contains(&image));
}

#[test]
fn every_flag_is_one_that_a_server_knows() {
    let help = Command::new(MCPZ).args(["server", "shell", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let arguments =
        document("packaging/server.json")["packages"][1]["packageArguments"].to_string();
    let manifest = document("packaging/mcpb/manifest.json");
    let started = |unit: &str| {
        let unit = text(&format!("packaging/systemd/{unit}"));
        unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap().to_owned()
    };
    for (place, count) in [
        (instruction("ENTRYPOINT").to_string(), 2),
        (text("packaging/kubernetes.yaml"), 4),
        (text("packaging/kubernetes-pods.yaml"), 2),
        (manifest["server"]["mcp_config"]["args"].to_string(), 4),
        (arguments, 3),
        (started("mcpz.service"), 2),
        (started("mcpz-user.service"), 4),
    ] {
        let words = place.split(|letter: char| !(letter == '-' || letter.is_ascii_lowercase()));
        // `---` stands between the documents of a file.
        let is_flag = |word: &&str| word.starts_with("--") && *word != "---" && word.len() > 2;
        let flags: Vec<&str> = words.filter(is_flag).collect();
        let flags: Vec<&str> =
            flags.into_iter().filter(|flag| !flag.starts_with("--from-")).collect();
        assert_eq!(flags.len(), count, "{flags:?}");
        for flag in flags {
            assert!(help.contains(&format!(" {flag} ")), "{flag} is not in\n{help}");
        }
    }
}

#[test]
fn a_container_serves_one_tool_to_those_with_a_token_as_nobody_in_particular() {
    let entry = ["/usr/local/bin/mcpz", "server", "shell", "--http", "--tools", "execute"];
    assert_eq!(instruction("ENTRYPOINT"), json!(entry));
    assert_eq!(instruction("HEALTHCHECK"), json!(["/usr/local/bin/mcpz", "health"]));
    assert!(text("Dockerfile").contains("\nUSER 10001:10001\n"));
    let pod = text("packaging/kubernetes.yaml");
    for promise in [
        "runtimeClassName: gvisor",
        "automountServiceAccountToken: false",
        "runAsNonRoot: true",
        "type: RuntimeDefault",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "drop: [ALL]",
        "secretKeyRef:",
        "ephemeral-storage: 6Gi",
        "egress: []",
    ] {
        assert!(pod.contains(promise), "{promise} is not in\n{pod}");
    }
}

#[test]
fn the_settings_of_a_container_are_understood() {
    for name in ["container.toml", "kubernetes-pods.toml"] {
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
        let mut command = Command::new(MCPZ);
        command.args(["check", "true", "--config"]).arg(packaging.join(name));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
    }
}

#[test]
fn the_server_of_a_cluster_has_the_role_of_the_manual() {
    let role = |page: &str| {
        let text = text(page);
        let (_, role) = text.split_once("kind: Role\n").unwrap();
        role.split_once("---").unwrap().0.to_owned()
    };
    assert_eq!(role("packaging/kubernetes-pods.yaml"), role("docs/places.md"));
}

/// The fields that the schema of 2025-12-11 wants, as far as we use them.
#[test]
fn the_entry_for_the_registry_is_of_its_form() {
    let server = document("packaging/server.json");
    assert!(server["$schema"].as_str().unwrap().ends_with("/2025-12-11/server.schema.json"));
    let (space, name) = server["name"].as_str().unwrap().split_once('/').unwrap();
    let plain = |text: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || ".-".contains(it));
    assert!(plain(space) && plain(name), "{space}/{name}");
    assert!(text("Dockerfile").contains(&format!("SERVER_NAME={space}/{name}\n")));
    for field in ["title", "description"] {
        let length = server[field].as_str().unwrap().chars().count();
        assert!((1..=100).contains(&length), "{field} has {length}");
    }
    let [bundle, image] = server["packages"].as_array().unwrap().as_slice() else {
        panic!("{server}")
    };
    assert_eq!((&bundle["registryType"], &image["registryType"]), (&json!("mcpb"), &json!("oci")));
    assert_eq!(bundle["transport"], json!({"type": "stdio"}));
    assert_eq!(bundle["fileSha256"].as_str().unwrap().len(), 64, "scripts/package fills it in");
    assert!(bundle["identifier"].as_str().unwrap().starts_with("https://"));
    assert_eq!(image["transport"]["type"], "streamable-http");
    assert!(image["transport"]["url"].as_str().unwrap().starts_with("http://"));
    assert!(image.get("version").is_none(), "the tag says it");
    for package in [bundle, image] {
        for list in ["runtimeArguments", "packageArguments", "environmentVariables"] {
            for input in package[list].as_array().into_iter().flatten() {
                assert!(input["name"].is_string() && input["description"].is_string(), "{input}");
                let variable = list == "environmentVariables";
                assert!(variable || input["type"] == "named", "{input}");
            }
        }
    }
}
