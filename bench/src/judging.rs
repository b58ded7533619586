//! What it takes to judge a command.

use mcpz_policy::{Policy, Rule, Scene, Verdict};

use crate::Bench;
use crate::statistics::timed;
use crate::table::Row;

/// Judges an ordinary command of 200 characters, and the longest that is read.
pub fn measure(bench: &Bench) -> Vec<Row> {
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
    let judge = |text: &str, rounds: usize| {
        let scene = Scene { home: Some("/home/dev"), ..Scene::at("/srv/proj") };
        let mut allowed = 0;
        let took = timed(|| {
            for _ in 0..rounds {
                let judged = policy.judge(std::hint::black_box(text), "bash", &scene);
                allowed += usize::from(judged.verdict == Verdict::Allow);
            }
        });
        let verdict = if allowed > 0 { "allowed" } else { "refused" };
        (verdict, took * 1e6 / rounds as f64)
    };
    let (verdict, short) = judge(line, bench.effort.judgements);
    let short = Row::new(format!("judging 200 characters ({verdict}), µs"), short);
    let (verdict, long) = judge(&long_text(), bench.effort.judgements / 100);
    vec![short, Row::new(format!("judging 64 KiB ({verdict}), µs"), long)]
}

/// The longest text that is judged.
const LONGEST: usize = 64 << 10;

/// Text that fills the limit with as many commands as there may be.
fn long_text() -> String {
    let command = format!("echo \"$(cat {})\" | grep 'x y z' > out.txt\n", "some/file ".repeat(50));
    let mut text = command.repeat(80);
    let rest = LONGEST - text.len();
    text.push_str(&format!("echo '{}'", "x".repeat(rest - 7)));
    text
}
