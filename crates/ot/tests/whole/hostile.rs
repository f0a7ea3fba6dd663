//! A network that reads, cuts and alters messages between two honest parties.

use crate::parties::{Party, both, generate, set_up, set_up_over};
use privet_channel::{Channel, pair};
use privet_ot::{Demand, Error, FieldBits, OtParty, Role, Stock};

const DEMAND: Demand = Demand { triples: 1000, ..Demand::NONE };

/// Bytes of the first message that come before the points.
const HEADER: usize = 3;

/// Passes messages on, first one from the client and then one from the server, until a party leaves. `edit` gets the
/// sender, how many messages it sent before, and the message.
fn relay(mut client: Channel, mut server: Channel, mut edit: impl FnMut(Role, usize, &mut Vec<u8>)) {
    const LIMIT: usize = 1 << 20;
    let mut pass = |from: &mut Channel, to: &mut Channel, role, index| {
        let mut message = from.recv_at_most(LIMIT)?;
        edit(role, index, &mut message);
        to.send(&message)?;
        to.flush()
    };
    let mut index = 0;
    while pass(&mut client, &mut server, Role::Client, index).is_ok()
        && pass(&mut server, &mut client, Role::Server, index).is_ok()
    {
        index += 1;
    }
}

/// Runs `parties` with the relay between them.
fn with_relay<T: Send>(
    edit: impl FnMut(Role, usize, &mut Vec<u8>) + Send,
    parties: impl FnOnce(Channel, Channel) -> T + Send,
) -> T {
    let ((client, to_client), (to_server, server)) = (pair(), pair());
    both(|| relay(to_client, to_server, edit), || parties(client, server)).1
}

/// What the server makes of its set-up when the client's message `index` is changed.
fn server_after(index: usize, change: impl Fn(&mut Vec<u8>) + Sync) -> Result<Party, Error> {
    let edit = |role, at, message: &mut Vec<u8>| {
        if (role, at) == (Role::Client, index) {
            change(message);
        }
    };
    with_relay(edit, |client, server| set_up_over(client, server, FieldBits::Four).1)
}

#[test]
fn the_relay_alone_disturbs_nothing() {
    assert!(server_after(0, |_| ()).is_ok());
}

#[test]
fn cut_and_lengthened_messages_are_refused() {
    for index in 0..2 {
        for change in
            [|message: &mut Vec<u8>| message.truncate(message.len() - 1), |message: &mut Vec<u8>| message.push(0)]
        {
            assert!(matches!(server_after(index, change), Err(Error::Channel(_))));
        }
    }
    assert!(matches!(server_after(0, |message| message.clear()), Err(Error::Channel(_))));
}

#[test]
fn bytes_that_are_no_points_are_refused() {
    for at in [HEADER, HEADER + 32, HEADER + 32 + 255 * 32] {
        let result = server_after(0, |message| message[at..at + 32].fill(0xff));
        assert!(matches!(result, Err(Error::PeerMisbehaved { .. })), "point at {at}");
    }
    let identity = server_after(0, |message| message[HEADER..HEADER + 32].fill(0));
    assert!(matches!(identity, Err(Error::PeerMisbehaved { .. })));
}

#[test]
fn another_version_role_or_field_is_refused() {
    for at in 0..HEADER {
        let result = server_after(0, |message| message[at] ^= 1);
        assert!(matches!(result, Err(Error::PeerMisbehaved { .. })), "byte {at}");
    }
}

#[test]
fn two_parties_of_one_role_or_of_two_fields_notice() {
    for (role, field) in [(Role::Client, FieldBits::Four), (Role::Server, FieldBits::Two)] {
        let (mut client, mut peer) = pair();
        let (client_result, peer_result) = both(
            || OtParty::setup(&mut client, Role::Client, FieldBits::Four).map(|_| ()),
            || OtParty::setup(&mut peer, role, field).map(|_| ()),
        );
        assert!(matches!(client_result, Err(Error::PeerMisbehaved { .. })));
        assert!(matches!(peer_result, Err(Error::PeerMisbehaved { .. })));
    }
}

/// Two generations of [`DEMAND`], with all bits of message `flipped` of the client flipped (2 and 3 are the extension's).
/// Returns for each whether all triples hold, and all messages of both parties.
fn generations(flipped: Option<usize>) -> Result<([bool; 2], Vec<Vec<u8>>), Error> {
    let mut messages = Vec::new();
    let edit = |role, index, message: &mut Vec<u8>| {
        messages.push(message.clone());
        if role == Role::Client && flipped == Some(index) {
            message.iter_mut().for_each(|byte| *byte ^= 0xff);
        }
    };
    let hold = with_relay(edit, |client, server| {
        let (client, server) = set_up_over(client, server, FieldBits::Four);
        let (mut client, mut server) = (client?, server?);
        let mut hold = [false; 2];
        for hold in &mut hold {
            let (first, second) = generate(&mut client, &mut server, &DEMAND);
            let (first, second) = (first?.take_triples(DEMAND.triples)?, second?.take_triples(DEMAND.triples)?);
            *hold = first.a.xor(&second.a).and(&first.b.xor(&second.b)) == first.c.xor(&second.c);
        }
        Ok::<_, Error>(hold)
    })?;
    Ok((hold, messages))
}

#[test]
fn generations_share_no_message() -> Result<(), Error> {
    let (hold, mut messages) = generations(None)?;
    assert_eq!(hold, [true, true]);
    assert_eq!(messages.len(), 8);
    // No 16-byte block of an extension's messages comes twice, in either direction.
    let mut blocks: Vec<[u8; 16]> = messages.drain(4..).flat_map(|message| message.as_chunks().0.to_vec()).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!((blocks.len(), count), (4 * 31 * 8, 4 * 31 * 8));
    Ok(())
}

#[test]
fn altered_contents_break_triples_but_nothing_else() -> Result<(), Error> {
    // A semi-honest protocol does not notice; TLS is what keeps the network from this. That the relation then fails
    // shows that the tests of it can fail.
    assert_eq!(generations(Some(1))?.0, [false, false], "the trees");
    assert_eq!(generations(Some(2))?.0, [false, true], "the first extension");
    Ok(())
}

#[test]
fn a_peer_that_leaves_is_an_error() -> Result<(), Error> {
    let (mut client, server) = set_up(FieldBits::Four)?;
    drop(server);
    assert!(matches!(Stock::generate(&mut client.ots, &mut client.channel, &DEMAND), Err(Error::Channel(_))));
    assert!(matches!(OtParty::setup(&mut client.channel, Role::Client, FieldBits::Four), Err(Error::Channel(_))));
    Ok(())
}
