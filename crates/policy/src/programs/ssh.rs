//! `ssh`, `scp` and `sftp`. A command for another machine is judged as if it ran here.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::script::Word;

/// Settings that run nothing and read no other settings.
const HARMLESS: Names = Names(
    "addressfamily batchmode checkhostip ciphers compression connectionattempts connecttimeout \
     controlmaster controlpath controlpersist forwardagent forwardx11 globalknownhostsfile \
     hashknownhosts hostkeyalgorithms hostkeyalias hostname identitiesonly identityfile ipqos \
     kbdinteractiveauthentication kexalgorithms loglevel macs numberofpasswordprompts \
     passwordauthentication port preferredauthentications proxyjump pubkeyauthentication \
     requesttty sendenv serveralivecountmax serveraliveinterval stricthostkeychecking \
     tcpkeepalive updatehostkeys user userknownhostsfile verifyhostkeydns",
);

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let syntax = match name {
        "ssh" => OptionSyntax {
            valued: "BbcDEeFIiJLlmOoPpQRSWw",
            stops_at_operand: true,
            ..OptionSyntax::default()
        },
        _ => OptionSyntax { valued: "BbcDFiJloPRSsX", ..OptionSyntax::default() },
    };
    let rest = options(actions, name, &syntax, call.arguments());
    match &call.input {
        Input::Text(text) if name == "sftp" && text.contains('!') => {
            return actions.opaque(call.span(), "one of its own commands that can run a program");
        }
        Input::Unknown if name == "sftp" => {
            return actions.unresolved(call.span(), "commands from its input");
        }
        _ => {}
    }
    let Some((host, rest)) = rest.split_first().filter(|_| name == "ssh") else { return };
    if host.literal().is_none() && actions.may_be_option(host) {
        return actions.unresolved(host.span.clone(), "a word that may be an option");
    }
    // Options are possible after the host, too.
    let command = options(actions, name, &syntax, rest);
    if !command.is_empty() {
        actions.run_joined(&command, Runner::SH);
    }
}

/// Lists what the options do, and returns the words after them.
fn options(
    actions: &mut Actions<'_>,
    name: &str,
    syntax: &OptionSyntax,
    words: &[Word],
) -> Vec<Word> {
    let (arguments, rest) = match parse(syntax, words) {
        Ok(parts) => parts,
        Err(span) => {
            actions.opaque(span, "an unknown option");
            return Vec::new();
        }
    };
    for argument in arguments {
        match argument {
            Argument::Option { name: option, value: Some(value), span } => match option.as_str() {
                "o" => {
                    let text = value.text().unwrap_or_default().to_lowercase();
                    let key = text.split(['=', ' ', '\t']).next().unwrap_or_default();
                    if !HARMLESS.has(key) {
                        actions.opaque(span, "a setting that can run a program");
                    }
                }
                "F" | "I" | "D" if name != "ssh" || option != "D" => {
                    actions.opaque(span, "a file that can name programs");
                }
                "b" if name == "sftp" && value.text().is_none_or(|file| file.contains("/dev/")) => {
                    actions.opaque(span, "commands from its input");
                }
                "S" if name != "ssh" => actions.run_text(&value, Runner::SH),
                "E" => actions.push(Action::WriteAside(value)),
                _ => {}
            },
            Argument::Unknown(word) if actions.may_be_option(&word) => {
                actions.unresolved(word.span, "a word that may be an option");
            }
            _ => {}
        }
    }
    rest
}
