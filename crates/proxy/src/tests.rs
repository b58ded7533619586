//! Tests of the proxy in a fake network: names and addresses are invented, and connections to public addresses end
//! at servers of the test. All checks are the real ones.

mod addresses;
mod clients;
mod connector;
mod http;
mod limits;
mod names;
mod network;
mod pieces;
mod socks;
