//! Variables that change what programs run.
//!
//! To add one, add its name to [`COMMANDS`] or [`DANGEROUS`].

use crate::names::Names;

/// What setting a variable does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Harmless,
    /// Something runs its value as a command.
    Command,
    /// It makes programs load or run something else.
    Dangerous,
}

/// Variables whose values are commands.
const COMMANDS: Names = Names(
    "AR AS BROWSER CC CPP CVS_RSH CXX EDITOR FC FZF_DEFAULT_COMMAND GIT_ASKPASS GIT_EDITOR \
     GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND \
     LD LESSCLOSE LESSOPEN MANPAGER PAGER PKG_CONFIG RSYNC_CONNECT_PROG RSYNC_RSH RUSTC \
     RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR VISUAL",
);

/// Ends of the names of such variables.
const COMMAND_ENDS: Names = Names("_PAGER _EDITOR _BROWSER _ASKPASS _RUNNER _LINKER");

/// Variables that make programs load or run something else.
const DANGEROUS: Names = Names(
    "AWS_CONFIG_FILE BASHOPTS BASH_ALIASES BASH_CMDS BASH_COMPAT BASH_ENV BASH_LOADABLES_PATH \
     BASH_XTRACEFD CARGO CARGO_BUILD_RUSTC CARGO_BUILD_RUSTC_WRAPPER CARGO_HOME CCACHE_COMPILER \
     CCACHE_PREFIX CDPATH CLASSPATH COMPILER_PATH CURL_HOME DOCKER_CONFIG DOCKER_HOST \
     EMACSLOADPATH ENV EXECIGNORE EXINIT FPATH FZF_DEFAULT_OPTS GCC_EXEC_PREFIX GCONV_PATH \
     GEM_HOME GEM_PATH GIT_ALLOW_PROTOCOL GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR \
     GIT_DIR GIT_EXEC_PATH GIT_OBJECT_DIRECTORY GIT_PROTOCOL_FROM_USER GIT_TEMPLATE_DIR \
     GIT_WORK_TREE GLOBIGNORE GTK_MODULES GTK_PATH HOME HOSTALIASES INPUTRC \
     JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS KUBECONFIG LESSKEY LESSKEYIN LESSKEYIN_SYSTEM \
     LESSKEY_CONTENT LESSKEY_SYSTEM LOCPATH MAKEFILES MANOPT MANPATH MANROFFOPT MYVIMRC NLSPATH \
     NODE_PATH NODE_REPL_EXTERNAL_MODULE OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES PARALLEL \
     PARALLEL_HOME PARALLEL_SHELL PATH PERL5DB PERL5LIB PERL5OPT PERLLIB PHPRC PHP_INI_SCAN_DIR \
     PIP_CONFIG_FILE POSIXLY_CORRECT PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 PYTHONBREAKPOINT \
     PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS \
     QT_PLUGIN_PATH RIPGREP_CONFIG_PATH RUBYLIB RUBYOPT R_PROFILE R_PROFILE_USER SHELL \
     SHELLOPTS SSH_AUTH_SOCK SSLKEYLOGFILE TAR_OPTIONS TERMCAP TERMINFO TERMINFO_DIRS TERMPATH \
     UNZIP UNZIPOPT VIM VIMINIT VIMRUNTIME WGETRC XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS \
     XDG_DATA_HOME ZDOTDIR ZIPOPT _JAVA_OPTIONS",
);

/// Beginnings of the names of such variables.
const DANGEROUS_BEGINNINGS: Names = Names(
    "BASH_FUNC_ CMAKE_TOOLCHAIN DYLD_ ERL_ GIT_CONFIG GIO_ GST_PLUGIN JULIA_ LD_ LUA_INIT \
     MALLOC_ CARGO_UNSTABLE_ CARGO_ALIAS_",
);

/// npm reads every setting from a variable; these settings name something to run.
const NPM: Names = Names(
    "script_shell shell node_options userconfig globalconfig prefix editor viewer browser git \
     init_module node_gyp onload_script",
);

/// What setting a variable does. The value is `None` if only the run will know it.
pub fn effect(name: &str, value: Option<&str>) -> Effect {
    if DANGEROUS.has(name) || DANGEROUS_BEGINNINGS.iter().any(|start| name.starts_with(start)) {
        return Effect::Dangerous;
    }
    if COMMANDS.has(name) || COMMAND_ENDS.iter().any(|end| name.ends_with(end)) {
        return Effect::Command;
    }
    let lower = name.to_lowercase().replace('-', "_");
    if let Some(setting) = lower.strip_prefix("npm_config_") {
        return if NPM.has(setting) { Effect::Dangerous } else { Effect::Harmless };
    }
    // Variables with options: most are harmless, some name a program.
    let signs: &[&str] = match name {
        "RUSTFLAGS" | "RUSTDOCFLAGS" | "CARGO_ENCODED_RUSTFLAGS" => &["linker", "-Z", "load"],
        "NODE_OPTIONS" => &["require", "import", "loader", "-r", "eval", "inspect", "experimental"],
        "MAKEFLAGS" | "MFLAGS" => &["=", "f", "I", "E", "$", "--"],
        "GOFLAGS" => &["exec", "vettool", "overlay", "modfile"],
        "CFLAGS" | "CXXFLAGS" | "LDFLAGS" | "CPPFLAGS" | "CGO_CFLAGS" | "CGO_LDFLAGS" => {
            &["-fplugin", "-B", "-wrapper", "-specs", "@"]
        }
        "LESS" | "MORE" => &["+", "!", "k", "-o", "-O"],
        "GREP_OPTIONS" | "GZIP" | "MAVEN_OPTS" | "GRADLE_OPTS" | "JAVA_OPTS" | "SBT_OPTS" => {
            &["agent", "bootclasspath", "-X", "OnError", "OnOutOfMemory"]
        }
        _ => return Effect::Harmless,
    };
    match value {
        Some(value) if !signs.iter().any(|sign| value.contains(sign)) => Effect::Harmless,
        _ => Effect::Dangerous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_what_they_do() {
        for name in [
            "PATH",
            "GTK_MODULES",
            "LD_PRELOAD",
            "BASH_FUNC_ls%%",
            "NPM_CONFIG_SCRIPT_SHELL",
            "PS4",
        ] {
            assert_eq!(effect(name, Some("x")), Effect::Dangerous, "{name}");
        }
        for name in ["PAGER", "GIT_SSH_COMMAND", "CARGO_TARGET_X86_RUNNER", "CC"] {
            assert_eq!(effect(name, Some("x")), Effect::Command, "{name}");
        }
        for name in ["RUST_LOG", "GIT_SHA", "CI", "npm_config_loglevel", "PYTHONUNBUFFERED"] {
            assert_eq!(effect(name, None), Effect::Harmless, "{name}");
        }
        assert_eq!(effect("RUSTFLAGS", Some("-C target-cpu=native")), Effect::Harmless);
        assert_eq!(effect("RUSTFLAGS", Some("-C linker=./x")), Effect::Dangerous);
        assert_eq!(effect("RUSTFLAGS", None), Effect::Dangerous);
    }
}
