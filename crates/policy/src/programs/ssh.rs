//! Commands for another machine, or another terminal: judged as if they ran here.

use super::arguments::{Argument, OptionSyntax, parse};
use super::wrappers;
use crate::judge::{Call, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Word};

/// Settings of ssh that run nothing and read no other settings.
const HARMLESS: Names = Names(
    "addressfamily batchmode checkhostip ciphers compression connectionattempts connecttimeout \
     controlmaster controlpath controlpersist forwardagent forwardx11 globalknownhostsfile \
     hashknownhosts hostkeyalgorithms hostkeyalias hostname identitiesonly identityfile ipqos \
     kbdinteractiveauthentication kexalgorithms loglevel macs numberofpasswordprompts \
     passwordauthentication port preferredauthentications proxyjump pubkeyauthentication \
     requesttty sendenv serveralivecountmax serveraliveinterval stricthostkeychecking \
     tcpkeepalive updatehostkeys user userknownhostsfile verifyhostkeydns",
);

/// `ssh`, `scp` and `sftp`.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let syntax = match name {
        "ssh" => OptionSyntax {
            valued: "BbcDEeFIiJLlmOoPpQRSWw",
            stops_at_operand: true,
            ..OptionSyntax::default()
        },
        _ => OptionSyntax { valued: "BbcDFiJloPRSsX", ..OptionSyntax::default() },
    };
    let rest = settings(judge, name, &syntax, call.arguments())?;
    let Some((host, behind)) = rest.split_first().filter(|_| name == "ssh") else { return Ok(()) };
    if host.literal().is_none() && judge.may_be_option(host) {
        return judge.unresolved(host.span.clone(), "a word that may be an option");
    }
    // Options may come behind the host, too.
    let command = settings(judge, name, &syntax, behind)?;
    match command.is_empty() {
        true => Ok(()),
        false => wrappers::joined(judge, &command, Shell::Sh),
    }
}

/// Judges options, and returns what stands behind them.
fn settings(
    judge: &mut Judge<'_>,
    name: &str,
    syntax: &OptionSyntax,
    words: &[Word],
) -> Result<Vec<Word>, crate::Denial> {
    let (arguments, rest) = match parse(syntax, words) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not known").map(|()| vec![]),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name: option, value: Some(value), span } => match option.as_str() {
                "o" => {
                    let text = value.text().unwrap_or_default().to_lowercase();
                    let key = text.split(['=', ' ', '\t']).next().unwrap_or_default();
                    if !HARMLESS.has(key) {
                        judge.opaque(span, "a setting that can run a program")?;
                    }
                }
                "F" | "I" | "D" if name != "ssh" || option != "D" => {
                    judge.opaque(span, "a file that can name programs")?;
                }
                "S" if name != "ssh" => judge.text(&value, Shell::Sh)?,
                "E" => judge.side_file(&value)?,
                _ => {}
            },
            Argument::Unknown(word) if judge.may_be_option(&word) => {
                judge.unresolved(word.span, "a word that may be an option")?;
            }
            _ => {}
        }
    }
    Ok(rest)
}

/// Commands of tmux that run nothing.
const TMUX: Names = Names(
    "a attach attach-session capture-pane capturep detach detach-client display display-message \
     has has-session kill-pane kill-server kill-session kill-window list-clients list-panes \
     list-sessions list-windows ls lsw lsp select-pane select-window show-options wait-for",
);

/// tmux: a new window's command is a text for a shell.
pub fn tmux(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let Some(command) = words.first() else {
        return judge.opaque(call.span(), "a shell in a terminal");
    };
    let text = command.literal().unwrap_or_default();
    let several = words.iter().any(|word| word.text().is_some_and(|text| text.ends_with(';')));
    if TMUX.has(&text) && !several {
        return Ok(());
    }
    let new =
        ["new", "new-session", "new-window", "neww", "split-window", "splitw", "respawn-pane"];
    if !new.contains(&&*text) || several {
        return judge.opaque(command.span.clone(), "a command of tmux that can run any other");
    }
    let syntax =
        OptionSyntax { valued: "cefFnstxylp", stops_at_operand: true, ..OptionSyntax::default() };
    match parse(&syntax, &words[1..]) {
        Ok((_, rest)) if rest.is_empty() => judge.opaque(call.span(), "a shell in a terminal"),
        Ok((_, rest)) => wrappers::joined(judge, &rest, Shell::Sh),
        Err(span) => judge.opaque(span, "an option that is not known"),
    }
}
