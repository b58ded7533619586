//! What it takes to judge a command.

use std::time::Instant;

use mcpz_policy::{Policy, Rule, Scene, Verdict};

/// Judges an ordinary command of 200 characters, and the longest that is read.
pub fn measure() {
    let policy = Policy {
        allow: Rule::list(
            "git,cargo,npm,ls,cat,grep,sed,awk,find,xargs,echo,head,cd,sort,wc,printf",
        )
        .expect("these are rules"),
        deny: Rule::list("rm,sudo,git push,npm publish,dd,mkfs*").expect("these are rules"),
        ..Policy::default()
    };
    let line = "cd src && git status -sb | head -20; for f in $(git ls-files '*.rs'); do grep -n \
                \"TODO: $f\" \"$f\" | sed -n '1,5p'; done && find . -name '*.txt' -exec wc -l {} + | \
                sort -rn | awk '{print $1}' | head -30";
    assert_eq!(line.len(), 200);
    let long = long_text();
    for (what, text, rounds) in
        [("judging 200 characters, µs", line, 20_000), ("judging 64 KiB, µs", &long, 200)]
    {
        let scene =
            Scene { directory: "/srv/proj", home: Some("/home/dev"), variables: &[], typed: false };
        let mut verdicts = 0;
        let began = Instant::now();
        for _ in 0..rounds {
            let judged = policy.judge(std::hint::black_box(text), "bash", &scene);
            verdicts += u32::from(judged.verdict == Verdict::Allow);
        }
        let micros = began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        let allowed = if verdicts > 0 { "allowed" } else { "refused" };
        crate::report(what, &format!("{micros:.1}"), "", allowed);
    }
}

/// Text that fills the limit with as many commands as there may be.
fn long_text() -> String {
    let command = format!("echo \"$(cat {})\" | grep 'x y z' > out.txt\n", "some/file ".repeat(50));
    let mut text = command.repeat(80);
    let rest = mcpz_policy::MAX_TEXT - text.len();
    text.push_str(&format!("echo '{}'", "x".repeat(rest - 7)));
    text
}
