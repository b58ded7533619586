//! The pages are true: what they show happens, where they lead is something, what they list is all.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[path = "docs/mod.rs"]
mod pages;
mod support;

use pages::console::Person;
use pages::{Page, all, manual, root, tools};

#[test]
fn what_the_pages_show_is_what_happens() {
    let pages = manual();
    assert!(pages.iter().any(|page| page.blocks.iter().any(|block| block.kind == "console")));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let follow = |page| {
            let reader = std::thread::Builder::new().name(page_name(page));
            reader.spawn_scoped(scope, || Person::new().follow(page)).unwrap()
        };
        let readers: Vec<_> = pages.iter().map(follow).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn page_name(page: &Page) -> String {
    page.path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_link_leads_somewhere() {
    for page in all() {
        let folder = page.path.parent().unwrap();
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.path.clone() } else { folder.join(path) };
            let place = page.path.display();
            assert!(target.exists(), "{place}: {link} leads nowhere");
            if !anchor.is_empty() {
                let anchors = Page::read(&target).anchors();
                assert!(
                    anchors.contains(&anchor.to_owned()),
                    "{place}: {link} is not in {anchors:?}"
                );
            }
        }
    }
}

#[test]
fn every_page_of_the_manual_is_in_its_index() {
    let index = Page::read(&root().join("docs/README.md"));
    for page in manual().iter().map(page_name).filter(|name| name != "README.md") {
        assert!(index.links.contains(&page), "{page} is not in {:?}", index.links);
    }
}

#[test]
fn the_page_of_tools_is_what_a_server_says_of_them() {
    let (path, page) = (root().join("docs/tools.md"), tools::page());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/tools.md is not up to date. Write it anew with\n\n    \
         UPDATE_DOCS=1 cargo test -p mcpz --bin mcpz --test docs the_page_of\n"
    );
}
