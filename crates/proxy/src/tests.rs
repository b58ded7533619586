//! The proxy in a world of its own: names and addresses are invented, and whatever is found to be
//! public is connected to a server of the test. Nothing of the checks is left out.

mod addresses;
mod clients;
mod door;
mod http;
mod limits;
mod names;
mod pieces;
mod socks;
mod world;
