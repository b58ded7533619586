//! The byte stream to a process in a pod, over a websocket. What it prints on stderr is what the place says.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, SimplexStream, WriteHalf};

use super::cluster::Cluster;
use crate::kubernetes_error::KubernetesError;
use crate::said::Said;

/// How much may be under way in each direction.
const BUFFER: usize = 1 << 20;

/// The exit code of a shell whose last command was killed.
const KILLED: &str = "137";

/// The input and output of a process. It ends, and what it started with it, when this is dropped.
pub struct Exec {
    stdin: WriteHalf<SimplexStream>,
    stdout: ReadHalf<SimplexStream>,
    stderr: ReadHalf<SimplexStream>,
    /// Completes when the process has ended, with how, or when the connection is lost. Only then is it certain that
    /// the output ends: a lost connection leaves it open.
    end: Pin<Box<dyn Future<Output = Option<Status>> + Send>>,
    has_ended: bool,
    said: Said,
    _connection: AttachedProcess,
}

impl Exec {
    /// Runs a script in a container of a pod.
    pub async fn start(
        cluster: &Cluster,
        pod: &str,
        container: &str,
        script: String,
        said: Said,
    ) -> Result<Self, KubernetesError> {
        let parameters = AttachParams {
            container: Some(container.to_owned()),
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
            max_stdin_buf_size: Some(BUFFER),
            max_stdout_buf_size: Some(BUFFER),
            max_stderr_buf_size: Some(BUFFER),
        };
        let command = ["sh".to_owned(), "-c".to_owned(), script];
        let action = "start the agent in the pod";
        let started = cluster.pods.exec(pod, command, &parameters).await;
        let mut started = started.map_err(|error| cluster.refused(action, error))?;
        let streams = (started.stdin(), started.stdout(), started.stderr(), started.take_status());
        let (Some(stdin), Some(stdout), Some(stderr), Some(end)) = streams else {
            let said = "it has no input or output".to_owned();
            return Err(KubernetesError::Refused { action, said });
        };
        let (end, has_ended) = (Box::pin(end), false);
        Ok(Self { stdin, stdout, stderr, end, has_ended, said, _connection: started })
    }

    /// Keeps what was said on stderr.
    fn listen(&mut self, context: &mut Context<'_>) {
        let mut bytes = [0; 512];
        loop {
            let mut arrived = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stderr).poll_read(context, &mut arrived) {
                Poll::Ready(Ok(())) if !arrived.filled().is_empty() => {
                    self.said.add(arrived.filled());
                }
                _ => return,
            }
        }
    }

    /// Keeps how the process ended, if that explains something.
    fn look_at_end(&mut self, status: Option<Status>) {
        self.has_ended = true;
        let message = status.and_then(|status| status.message).unwrap_or_default();
        if message.ends_with(KILLED) {
            self.said.add(b"\nthe agent was killed; the pod may have run out of memory\n");
        } else if !message.is_empty() && !message.contains("exit code") {
            self.said.add(format!("\n{message}\n").as_bytes());
        }
    }
}

impl AsyncRead for Exec {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.listen(context);
        if !this.has_ended
            && let Poll::Ready(status) = this.end.as_mut().poll(context)
        {
            this.look_at_end(status);
        }
        match Pin::new(&mut this.stdout).poll_read(context, into) {
            // All that was printed has arrived before.
            Poll::Pending if this.has_ended => {
                this.listen(context);
                Poll::Ready(Ok(()))
            }
            read => read,
        }
    }
}

impl AsyncWrite for Exec {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // The reader sees the end as well, and before it why.
        if self.has_ended {
            return Poll::Ready(Ok(bytes.len()));
        }
        match ready!(Pin::new(&mut self.stdin).poll_write(context, bytes)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(bytes.len())),
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(context)
    }
}
