//! The macros that declare settings.

/// Declares a table of the file, with one row for each setting:
///
/// ```text
/// /// One sentence for the manual.
/// key: Type = default,
///     like: value, words: "…", variable: "NAME", flag: Flag { … };
/// ```
///
/// The parts of the last line are optional, in this order:
///
/// - `like`: the value that an unset row behaves like, if the row is an `Option` to tell the two apart.
/// - `words`: the default as the manual puts it, if its value would not explain it.
/// - `variable`: an environment variable that counts before the file.
/// - `flag`: a flag that counts before both.
///
/// A row becomes a field, which holds what one source says, and a method, which returns the value to use.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident: $type:ty = $default:expr
                $(, like: $like:expr)?
                $(, words: $words:expr)?
                $(, variable: $variable:expr)?
                $(, flag: $flag:expr)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(pub $key: Option<$type>,)+
        }

        impl $name {
            $(
                $(#[doc = $doc])+
                pub fn $key(&self) -> $type {
                    self.$key.clone().unwrap_or_else(|| $default)
                }
            )+

            pub fn section(table: Option<&'static str>) -> super::row::Section {
                use super::value::Value;
                let rows = vec![$(
                    super::row::Row {
                        key: stringify!($key),
                        about: concat!($($doc),+),
                        kind: <$type as Value>::kind,
                        default: || None$(.or($like.toml()))?.or_else(|| <$type as Value>::toml(&$default)),
                        words: None$(.or(Some(|| $words.to_string())))?,
                        inner: <$type as Value>::inner,
                        variable: None$(.or(Some($variable)))?,
                        flag: None$(.or(Some($flag.typed::<$type>())))?,
                    },
                )+];
                super::row::Section { table, about: concat!($($about),+), rows }
            }
        }
    };
}

/// Declares where the settings of a section come from, besides the file.
macro_rules! sources {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident: $type:ty = $default:expr
                $(, like: $like:expr)?
                $(, words: $words:expr)?
                $(, variable: $variable:expr)?
                $(, flag: $flag:expr)?;
            )+
        }
    ) => {
        impl $name {
            /// What flags say.
            pub fn from_flags(flags: &clap::ArgMatches, scope: super::flag::Scope) -> Self {
                let _ = (flags, scope);
                Self { $($key: None$(.or($flag.read(flags, scope)))?,)+ }
            }

            /// What variables say.
            pub fn from_variables() -> Result<Self, super::variable::InvalidVariable> {
                Ok(Self { $($key: None$(.or(super::variable::FromVariable::read($variable)?))?,)+ })
            }

            /// What this says or, where it says nothing, the other.
            pub fn or(self, other: Self) -> Self {
                Self { $($key: super::value::combined(self.$key, other.$key),)+ }
            }
        }
    };
}

/// Declares a section that flags and variables have a say in.
macro_rules! section {
    ($($rows:tt)+) => {
        super::section::table! { $($rows)+ }
        super::section::sources! { $($rows)+ }
    };
}

/// Declares a table inside a value, such as `[http.oauth]`: a struct whose keys the manual lists.
macro_rules! inner_table {
    (
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($serde:ident)])? pub $key:ident: $type:ty,)+
        }
    ) => {
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($serde)])? pub $key: $type,)+
        }

        impl super::value::Value for $name {
            fn kind() -> String {
                "table".to_owned()
            }

            fn toml(&self) -> Option<String> {
                None
            }

            fn inner() -> Vec<super::row::Row> {
                use super::value::Value;
                vec![$(
                    super::row::Row {
                        key: stringify!($key),
                        about: concat!($($doc),+),
                        kind: <$type as Value>::kind,
                        default: || None,
                        words: (!<$type as Value>::OPTIONAL).then_some(|| "required".to_owned()),
                        inner: Vec::new,
                        variable: None,
                        flag: None,
                    },
                )+]
            }
        }
    };
}

pub(super) use {inner_table, section, sources, table};
