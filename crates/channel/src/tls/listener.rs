//! The server's side of a TLS channel.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustix::event::PollFlags;
use rustls::{ServerConfig, ServerConnection};

use super::config;
use super::credentials::{Identity, Trust};
use super::problem::translate;
use super::session::Session;
use crate::channel::Channel;
use crate::deadline::Deadline;
use crate::error::{Error, Io};
use crate::socket::{Socket, failure, wait_for};

/// A port that clients connect to.
pub struct Listener {
    listener: TcpListener,
    config: RwLock<Arc<ServerConfig>>,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address` ("host:port"; port 0 takes a free one, see [`Listener::local_addr`]).
    ///
    /// # Errors
    /// [`Io::Bind`] if the address cannot be had.
    pub fn bind(address: &str, identity: &Identity, trust: &Trust) -> Result<Self, Error> {
        let config = config::server(identity, trust)?;
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        match bound {
            Ok((listener, address)) => Ok(Self { listener, config: RwLock::new(config), address }),
            Err(error) => Err(Io::Bind { address: address.to_owned(), problem: error.to_string() }.into()),
        }
    }

    /// The address listened on, with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Shows `identity` to clients that are accepted from now on, and lets in whom `trust` vouches for. Channels that are
    /// open go on, and no client resumes a session that was begun before.
    ///
    /// # Errors
    /// [`crate::Misuse::Pem`] if they cannot be used; those before stay then.
    pub fn renew(&self, identity: &Identity, trust: &Trust) -> Result<(), Error> {
        let config = config::server(identity, trust)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Waits for the next client. Nothing is said to it yet: [`Pending::handshake`] does that, best on a thread of its
    /// own, so that a slow or hostile client delays nobody else.
    ///
    /// # Errors
    /// [`Io::TimedOut`] if nobody came in time; [`Io::System`] if the system has no resources left.
    pub fn accept(&self, timeout: Duration) -> Result<Pending, Error> {
        let deadline = Deadline::after(timeout, "a client to connect");
        loop {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
                    return Ok(Pending { stream, address, config });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(&self.listener, PollFlags::IN, &deadline)?;
                }
                // The client gave up between connecting and being accepted.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                    deadline.remaining()?;
                }
                Err(error) => return Err(failure("accepting a client", &error)),
            }
        }
    }
}

/// A client that has connected but not yet said who it is.
pub struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    config: Arc<ServerConfig>,
}

impl Pending {
    /// Where the client connects from.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs the TLS handshake; returns when both sides have accepted each other.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] with `Certificate` if the client's certificate is missing or not accepted, `Refused`
    /// if it did not accept this side's, `Tls` if it does not speak the protocol; [`Io::TimedOut`] if it is too slow.
    pub fn handshake(self, timeout: Duration) -> Result<Channel, Error> {
        let mut deadline = Deadline::after(timeout, "the client's TLS handshake");
        let connection = ServerConnection::new(self.config).map_err(translate)?;
        let session = Session::establish(Socket::new(self.stream)?, None, connection, &mut deadline)?;
        Ok(Channel::new(Box::new(session)))
    }
}
