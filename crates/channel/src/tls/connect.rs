//! The client's side of a TLS channel.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::config;
use super::credentials::{Identity, Trust};
use super::problem::translate;
use super::session::Session;
use crate::channel::Channel;
use crate::deadline::Deadline;
use crate::error::{Error, Io, Misuse};
use crate::socket::Socket;

/// Connects to a listening peer and returns when both sides have accepted each other.
///
/// `server_name`: the DNS name or IP address that the server's certificate must be for (often `host`). `timeout` bounds
/// all of it: name look-up, TCP and TLS. The channel starts with the default timeout for messages.
///
/// # Errors
/// [`Io::ConnectionRefused`], [`Io::UnknownHost`], [`Io::Unreachable`] or [`Io::TimedOut`] if there is no connection;
/// [`crate::PeerMisbehaved`] with `Certificate` if the server's certificate is not accepted, `Refused` if it did not
/// accept this side's, `Tls` if it does not speak the protocol; [`Misuse::ServerName`].
pub fn connect(
    host: &str,
    port: u16,
    identity: &Identity,
    trust: &Trust,
    server_name: &str,
    timeout: Duration,
) -> Result<Channel, Error> {
    let name = ServerName::try_from(server_name.to_owned())
        .map_err(|_| Misuse::ServerName { name: server_name.to_owned() })?;
    let config = config::client(identity, trust)?;
    let mut deadline = Deadline::after(timeout, "a connection to the server");
    let (stream, rtt) = reach(host, port, &deadline)?;
    let connection = ClientConnection::new(config, name).map_err(translate)?;
    let session = Session::establish(Socket::new(stream)?, rtt, connection, &mut deadline)?;
    Ok(Channel::new(Box::new(session)))
}

/// Connects to the first address of the host that answers; how long that took, unless it is this machine.
fn reach(host: &str, port: u16, deadline: &Deadline) -> Result<(TcpStream, Option<Duration>), Error> {
    let addresses = resolve(host, port, deadline)?;
    let mut last = None;
    for address in addresses {
        let start = Instant::now();
        match TcpStream::connect_timeout(&address, deadline.remaining()?) {
            // TCP asks and is answered by the peer's system: one round trip.
            Ok(stream) => {
                let near = address.ip().to_canonical().is_loopback();
                return Ok((stream, (!near).then(|| start.elapsed())));
            }
            Err(error) => last = Some(error),
        }
    }
    let host = host.to_owned();
    Err(match last {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => Io::ConnectionRefused { host, port },
        Some(error) => {
            deadline.remaining()?;
            Io::Unreachable { host, port, problem: error.to_string() }
        }
        None => Io::UnknownHost { host, problem: "it has no address".to_owned() },
    }
    .into())
}

/// The addresses of a host. The system's resolver has no time limit, so it runs on a thread of its own.
fn resolve(host: &str, port: u16, deadline: &Deadline) -> Result<Vec<SocketAddr>, Error> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    thread::spawn(move || {
        let addresses = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Nobody listens any more if the time is over.
        let _ = sender.send(addresses);
    });
    match receiver.recv_timeout(deadline.remaining()?) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(Io::UnknownHost { host: host.to_owned(), problem: error.to_string() }.into()),
        Err(_) => {
            deadline.remaining()?;
            Err(Io::UnknownHost { host: host.to_owned(), problem: "the look-up failed".to_owned() }.into())
        }
    }
}
