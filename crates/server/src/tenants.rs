//! The clients of an HTTP server: each principal has outputs, jobs and tasks of its own.
//!
//! These outlast its connections, until the tenant was away for too long. A running task holds its owner but does not
//! count as a connection, so nobody's task keeps its tenant here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcpz_engine::Owner;

use crate::handler::ShellServer;
use crate::http::{Backend, Principal, write_engine_metrics, write_metric};
use crate::tasks::Tasks;

/// The most tenants that are kept although they own nothing.
const MAX_TENANTS: usize = 1000;

/// Gives every principal the same shell, with an owner of its own.
pub struct Tenants {
    shell: ShellServer,
    by_name: Mutex<HashMap<Arc<str>, Tenant>>,
}

struct Tenant {
    owner: Arc<Owner>,
    /// Handlers hold it while the tenant is connected. A task that outlasts them holds only the owner.
    tasks: Arc<Tasks>,
    last_seen: Instant,
}

impl Tenant {
    fn is_connected(&self) -> bool {
        Arc::strong_count(&self.tasks) > 1
    }

    /// Whether it has no outputs, jobs and tasks.
    fn owns_nothing(&self) -> bool {
        self.owner.list().is_empty() && self.owner.jobs.running() == 0 && self.tasks.is_empty()
    }
}

impl Tenants {
    pub fn new(shell: ShellServer) -> Self {
        Self { shell, by_name: Mutex::default() }
    }
}

impl Backend for Tenants {
    type Handler = ShellServer;

    fn handler(&self, principal: &Arc<Principal>) -> ShellServer {
        let mut tenants = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MAX_TENANTS && !tenants.contains_key(&principal.name) {
            tenants.retain(|_, tenant| tenant.is_connected() || !tenant.owns_nothing());
        }
        let new = || Tenant {
            owner: Arc::new(self.shell.engine().owner("http", &principal.name)),
            tasks: Arc::new(Tasks::new(self.shell.engine().settings().keep_time)),
            last_seen: Instant::now(),
        };
        let tenant = tenants.entry(principal.name.clone()).or_insert_with(new);
        tenant.last_seen = Instant::now();
        self.shell.for_owner(tenant.owner.clone(), tenant.tasks.clone())
    }

    fn evict_idle(&self, limit: Duration) {
        let mut tenants = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        for tenant in tenants.values_mut() {
            if tenant.is_connected() {
                tenant.last_seen = Instant::now();
            } else if tenant.last_seen.elapsed() > limit {
                tenant.owner.jobs.stop_all();
                tenant.tasks.cancel_all();
                tenant.owner.leave_sandbox();
            }
        }
    }

    fn is_traced(&self) -> bool {
        self.shell.is_traced()
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        write_metric(&mut text, "mcpz_calls_total", "counter", "Tool calls", self.shell.calls());
        write_engine_metrics(&mut text, self.shell.engine());
        text
    }
}
