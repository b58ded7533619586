//! Metrics in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use mcpz_engine::{Engine, Latency};

/// Counts of what happened on HTTP.
#[derive(Default)]
pub struct Metrics {
    /// By the first digit of their status.
    responses: [AtomicU64; 5],
    connections: AtomicU64,
}

impl Metrics {
    pub fn note_response(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        self.responses[class].fetch_add(1, Ordering::Relaxed);
    }

    pub fn note_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn write(&self, text: &mut String, sessions: usize) {
        head(text, "mcpz_http_responses_total", "counter", "HTTP responses by status class");
        for (class, count) in self.responses.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            let _ =
                writeln!(text, "mcpz_http_responses_total{{class=\"{}xx\"}} {count}", class + 1);
        }
        let connections = self.connections.load(Ordering::Relaxed);
        write_metric(
            text,
            "mcpz_http_connections_total",
            "counter",
            "HTTP connections",
            connections,
        );
        write_metric(text, "mcpz_sessions", "gauge", "Open sessions", sessions as u64);
    }
}

/// Writes the metrics of the engine.
pub fn write_engine_metrics(text: &mut String, engine: &Engine) {
    let stats = engine.stats();
    let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
    head(text, "mcpz_runs_total", "counter", "Commands by outcome");
    for (name, count) in stats.ends() {
        let _ = writeln!(text, "mcpz_runs_total{{outcome=\"{name}\"}} {count}");
    }
    write_metric(text, "mcpz_runs_running", "gauge", "Commands running now", load(&stats.running));
    write_metric(
        text,
        "mcpz_runs_refused_total",
        "counter",
        "Commands refused",
        load(&stats.refused),
    );
    write_metric(
        text,
        "mcpz_runs_busy_total",
        "counter",
        "Commands rejected because the server was busy",
        load(&stats.busy),
    );
    write_metric(
        text,
        "mcpz_output_bytes_total",
        "counter",
        "Bytes printed by commands",
        load(&stats.bytes),
    );
    write_metric(text, "mcpz_spill_bytes", "gauge", "Bytes of output on disk", engine.spilled());
    let places = engine.count_places();
    if !places.is_empty() {
        head(text, "mcpz_places", "gauge", "Open places");
    }
    for (name, count) in places {
        let _ = writeln!(text, "mcpz_places{{place=\"{name}\"}} {count}");
    }
    histogram(
        text,
        "mcpz_spawn_seconds",
        "Time from a request to its first process",
        &stats.spawning,
    );
    histogram(text, "mcpz_run_seconds", "Time from a request to its answer", &stats.total);
}

pub fn write_metric(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    head(text, name, kind, help);
    let _ = writeln!(text, "{name} {value}");
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn histogram(text: &mut String, name: &str, help: &str, latency: &Latency) {
    head(text, name, "histogram", help);
    let mut sum = 0;
    for (bound, count) in latency.buckets() {
        let end = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
        sum += count;
        let _ = writeln!(text, "{name}_bucket{{le=\"{end}\"}} {sum}");
    }
    let _ = writeln!(text, "{name}_sum {}\n{name}_count {sum}", latency.sum().as_secs_f64());
}
