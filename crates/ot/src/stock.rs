//! The stock of correlations: generated ahead of time, handed out once.

use std::ops::Add;

use privet_channel::Channel;
use privet_ring::Bits;
use zeroize::Zeroizing;

use crate::columns::Columns;
use crate::correlations::{PairedTriples, PrivateAnds, ProductsReceived, ProductsSent, Triples};
use crate::one_hots::{self, OneHots};
use crate::packed::{PackedRef, Width};
use crate::random::{BitsReceived, BitsSent, PairsReceived, PairsSent};
use crate::schedule::{self, Run};
use crate::{
    Demand, Error, Kind, OneHotCounts, OtParty, ProductCounts, Role, Shape, TableCounts, TablesReceived, TablesSent,
};

/// One party's correlations. Every `take_*` hands out correlations that no other call gets; the two parties must take
/// the same amounts of each kind in the same order. If fewer are left than are asked for, it is
/// [`Error::StockExhausted`].
pub struct Stock {
    pub(crate) role: Role,
    pub(crate) private_ands: PrivateAnds,
    pub(crate) triples: Triples,
    pub(crate) paired_triples: PairedTriples,
    pub(crate) products: Products,
    /// Whether all products are of whole words, which serve for any width.
    pub(crate) is_of_words: bool,
    pub(crate) tables: Tables,
    /// By the length of the vectors.
    pub(crate) one_hots: [OneHots; one_hots::COUNT],
    /// How many of each kind are gone, in the order of [`Kind`].
    pub(crate) taken: [usize; Kind::COUNT],
}

/// The most correlations of a kind for which there is room before any is made.
const MOST_ROOM: usize = 1 << 26;

/// Places of products in a stock, as many in either direction; see [`Stock::claim_products`].
#[derive(Debug)]
pub struct Claim {
    width: Width,
    sent: usize,
    received: usize,
    count: usize,
}

/// All products of a party, by width.
pub(crate) struct Products {
    pub(crate) sent: [ProductsSent; Width::COUNT],
    pub(crate) received: [ProductsReceived; Width::COUNT],
}

impl Default for Products {
    fn default() -> Self {
        Self { sent: Width::ALL.map(ProductsSent::none), received: Width::ALL.map(ProductsReceived::none) }
    }
}

impl Products {
    /// Those of whole words.
    pub(crate) fn of_words(&self) -> (&ProductsSent, &ProductsReceived) {
        let place = Width::WORD.index();
        (&self.sent[place], &self.received[place])
    }
}

/// All tables of a party, by shape.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) sent: [TablesSent; 2],
    pub(crate) received: [TablesReceived; 2],
}

impl Default for Tables {
    fn default() -> Self {
        Self { sent: Shape::ALL.map(TablesSent::none), received: Shape::ALL.map(TablesReceived::none) }
    }
}

/// All OTs of one party before they become correlations.
#[derive(Default)]
pub(crate) struct Ots {
    pub(crate) bits_sent: BitsSent,
    pub(crate) bits_received: BitsReceived,
    pub(crate) pairs_sent: PairsSent,
    pub(crate) pairs_received: PairsReceived,
    pub(crate) products: Products,
    pub(crate) tables: Tables,
    pub(crate) one_hots: [OneHots; one_hots::COUNT],
}

impl Ots {
    /// None yet, in the memory of a stock that is used up, with room for what `role` makes of `demand`: what grows by itself is copied, and ends
    /// with up to twice the room.
    fn for_demand(demand: &Demand, role: Role, spare: Stock) -> Self {
        let Stock { products, tables, one_hots, .. } = spare;
        let mut ots = Self { products, tables, one_hots, ..Self::default() };
        // All that is too large goes before anything comes.
        ots.each(demand, role, |columns, count| columns.empty(count));
        ots.each(demand, role, |columns, count| match count {
            0 => (),
            _ => columns.make_room(count.min(MOST_ROOM)),
        });
        ots
    }

    /// Calls `act` with products, tables and one-hot vectors of each kind, and how many of them `role` makes of `demand`.
    fn each(&mut self, demand: &Demand, role: Role, mut act: impl FnMut(&mut dyn Columns, usize)) {
        let [sent, received] = [role, role.peer()].map(|sender| demand.products(sender).all());
        self.products.sent.iter_mut().zip(sent).for_each(|(columns, (_, count))| act(columns, count));
        self.products.received.iter_mut().zip(received).for_each(|(columns, (_, count))| act(columns, count));
        let [sent, received] =
            [role, role.peer()].map(|sender| Shape::ALL.map(|shape| demand.tables(sender).count(shape)));
        self.tables.sent.iter_mut().zip(sent).for_each(|(columns, count)| act(columns, count));
        self.tables.received.iter_mut().zip(received).for_each(|(columns, count)| act(columns, count));
        self.one_hots.iter_mut().zip(demand.one_hots.all()).for_each(|(columns, (_, count))| act(columns, count));
    }

    /// Makes `runs` as their receiver.
    fn receive(&mut self, party: &mut OtParty, channel: &mut Channel, runs: &[Run]) -> Result<(), Error> {
        for &run in runs {
            match run {
                Run::Bits(count) => self.bits_received.join(&party.receive_bits(channel, count)?),
                Run::Pairs(count) => self.pairs_received.join(&party.receive_pairs(channel, count)?),
                Run::Products(width, count) => {
                    party.receive_products(channel, count, &mut self.products.received[width.index()])?;
                }
                Run::Tables(shape, count) => {
                    self.tables.received[shape as usize].join(&party.receive_tables(channel, shape, count)?);
                }
            }
        }
        Ok(())
    }

    /// Makes `runs` as their sender.
    fn send(&mut self, party: &mut OtParty, channel: &mut Channel, runs: &[Run]) -> Result<(), Error> {
        for &run in runs {
            match run {
                Run::Bits(count) => self.bits_sent.join(&party.send_bits(channel, count)?),
                Run::Pairs(count) => self.pairs_sent.join(&party.send_pairs(channel, count)?),
                Run::Products(width, count) => {
                    party.send_products(channel, count, &mut self.products.sent[width.index()])?;
                }
                Run::Tables(shape, count) => {
                    self.tables.sent[shape as usize].join(&party.send_tables(channel, shape, count)?);
                }
            }
        }
        Ok(())
    }
}

impl Stock {
    /// Nothing, for `role`.
    pub fn empty(role: Role) -> Self {
        Self::assemble(role, &Demand::NONE, Ots { one_hots: one_hots::none(), ..Ots::default() })
    }

    /// Makes `demand` with the peer, who must ask for the same. Cost: [`crate::cost::generate`].
    ///
    /// # Errors
    /// Those of [`OtParty::send_bits`]; after one, the party must not be used again.
    pub fn generate(party: &mut OtParty, channel: &mut Channel, demand: &Demand) -> Result<Self, Error> {
        Self::generate_in(Self::empty(party.role()), party, channel, demand)
    }

    /// As [`Stock::generate`], in the memory of a stock that is used up: pages are not asked for anew, and what is written over is not
    /// wiped before. What is left of the old contents is wiped with the new ones.
    ///
    /// # Errors
    /// As [`Stock::generate`].
    pub fn generate_in(
        spare: Self,
        party: &mut OtParty,
        channel: &mut Channel,
        demand: &Demand,
    ) -> Result<Self, Error> {
        Self::generate_beside(spare, party, channel, demand, &mut |_, _| Ok::<_, Error>(()))
    }

    /// As [`Stock::generate_in`]. `beside` is called after each batch of messages of silent OT, with their number so far, for work of
    /// its own on the channel, which travels while OTs are made.
    ///
    /// Messages have one order in either direction, so there are [`crate::slots`] of them in which it may answer the peer: what it sends
    /// in slot `i` the peer receives in slot `i + 1`, and what the peer sends there arrives in slot `i + 2`.
    ///
    /// # Errors
    /// As [`Stock::generate`]; those of `beside`.
    pub fn generate_beside<E: From<Error>>(
        spare: Self,
        party: &mut OtParty,
        channel: &mut Channel,
        demand: &Demand,
        beside: &mut dyn FnMut(usize, &mut Channel) -> Result<(), E>,
    ) -> Result<Self, E> {
        let role = party.role();
        let parts = schedule::parts(demand);
        let mut ots = Self::transfer(Ots::for_demand(demand, role, spare), party, channel, &parts[0], beside)?;
        let mut words = Self::empty(role);
        for (run, demand) in demand.one_hots.runs().into_iter().zip(&parts[1..]) {
            let transferred =
                Self::transfer(Ots::for_demand(demand, role, words), party, channel, demand, &mut |_, _| Ok(()))?;
            words = Self::assemble(role, demand, transferred);
            let vectors = one_hots::grow(channel, role, run, &words)?;
            ots.one_hots[one_hots::index(run.bits)].join(&vectors);
        }
        Ok(Self::assemble(role, demand, ots))
    }

    /// Makes the OTs of a demand without one-hot vectors in the room of `ots`, where there are none yet.
    fn transfer<E: From<Error>>(
        mut ots: Ots,
        party: &mut OtParty,
        channel: &mut Channel,
        demand: &Demand,
        beside: &mut dyn FnMut(usize, &mut Channel) -> Result<(), E>,
    ) -> Result<Ots, E> {
        let role = party.role();
        let (outgoing, incoming) = (schedule::runs(demand, role.peer()), schedule::runs(demand, role));
        if !outgoing.is_empty() {
            party.begin(channel)?;
        }
        channel.flush().map_err(Error::from)?;
        let ahead = if party.speaks_as_sender() { schedule::AHEAD } else { 0 };
        for (slot, (outgoing, incoming)) in schedule::batches(&outgoing, &incoming, ahead).enumerate() {
            if party.speaks_as_sender() {
                ots.send(party, channel, incoming)?;
                channel.flush().map_err(Error::from)?;
                ots.receive(party, channel, outgoing)?;
                beside(slot, channel)?;
            } else {
                ots.receive(party, channel, outgoing)?;
                channel.flush().map_err(Error::from)?;
                ots.send(party, channel, incoming)?;
            }
        }
        channel.flush().map_err(Error::from)?;
        Ok(ots)
    }

    /// Which party's stock this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What is left.
    pub fn left(&self) -> Demand {
        let products = |kind: fn(Width) -> Kind| {
            let counts = Width::ALL.map(|width| ProductCounts::of(8 * width.bytes() as u32, self.left_of(kind(width))));
            counts.into_iter().fold(ProductCounts::NONE, Add::add)
        };
        let (sent, received) = (products(Kind::ProductsSent), products(Kind::ProductsReceived));
        let one_hots = one_hots::SIZES.map(|bits| OneHotCounts::of(bits, self.left_of(Kind::OneHots(bits))));
        let tables = |kind: fn(Shape) -> Kind| TableCounts {
            eights: self.left_of(kind(Shape::Eight)),
            sixteens: self.left_of(kind(Shape::Sixteen)),
        };
        let (tables_sent, tables_received) = (tables(Kind::TablesSent), tables(Kind::TablesReceived));
        let ((by_server, by_client), (tables_by_server, tables_by_client)) = match self.role {
            Role::Server => ((sent, received), (tables_sent, tables_received)),
            Role::Client => ((received, sent), (tables_received, tables_sent)),
        };
        Demand {
            private_ands: self.left_of(Kind::PrivateAnds),
            triples: self.left_of(Kind::Triples),
            paired_triples: self.left_of(Kind::PairedTriples),
            products_sent_by_server: by_server,
            products_sent_by_client: by_client,
            tables_sent_by_server: tables_by_server,
            tables_sent_by_client: tables_by_client,
            one_hots: one_hots.fold(OneHotCounts::NONE, Add::add),
        }
    }

    /// Whether what is left is `demand`; products of whole words serve for those of any width.
    pub fn has_left(&self, demand: &Demand) -> bool {
        self.left() == if self.is_of_words { demand.of_words() } else { *demand }
    }

    /// The next `count` private ANDs.
    pub fn take_private_ands(&mut self, count: usize) -> Result<PrivateAnds, Error> {
        let start = self.claim(Kind::PrivateAnds, count)?;
        Ok(self.private_ands.cut(start, count))
    }

    /// The next `count` bit triples.
    pub fn take_triples(&mut self, count: usize) -> Result<Triples, Error> {
        let start = self.claim(Kind::Triples, count)?;
        Ok(self.triples.cut(start, count))
    }

    /// The next `count` pairs of bit triples that share their first bit.
    pub fn take_paired_triples(&mut self, count: usize) -> Result<PairedTriples, Error> {
        let start = self.claim(Kind::PairedTriples, count)?;
        Ok(self.paired_triples.cut(start, count))
    }

    /// The width of stored products that serves for elements of `bits` bits.
    fn width(&self, bits: u32) -> Width {
        if self.is_of_words { Width::WORD } else { Width::of(bits) }
    }

    /// The next `count` products modulo `2^bits` of which this party holds the ring element.
    pub fn take_products_sent(&mut self, bits: u32, count: usize) -> Result<ProductsSent, Error> {
        let width = self.width(bits);
        let start = self.claim(Kind::ProductsSent(width), count)?;
        Ok(self.products.sent[width.index()].cut(start, count))
    }

    /// The next `count` products modulo `2^bits` of which this party holds the bit.
    pub fn take_products_received(&mut self, bits: u32, count: usize) -> Result<ProductsReceived, Error> {
        let width = self.width(bits);
        let start = self.claim(Kind::ProductsReceived(width), count)?;
        Ok(self.products.received[width.index()].cut(start, count))
    }

    /// The next `count` products modulo `2^bits` in either direction, which stay where they are until [`Stock::sent`], [`Stock::choice`] and
    /// [`Stock::received`] read them: there may be hundreds of megabytes.
    pub fn claim_products(&mut self, bits: u32, count: usize) -> Result<Claim, Error> {
        let width = self.width(bits);
        let sent = self.claim(Kind::ProductsSent(width), count)?;
        Ok(Claim { width, sent, received: self.claim(Kind::ProductsReceived(width), count)?, count })
    }

    /// As [`Stock::claim_products`], in one direction: those of which `sender` holds the ring element.
    pub fn claim_products_from(&mut self, sender: Role, bits: u32, count: usize) -> Result<Claim, Error> {
        let width = self.width(bits);
        let is_sent = sender == self.role;
        let start =
            self.claim(if is_sent { Kind::ProductsSent(width) } else { Kind::ProductsReceived(width) }, count)?;
        let [sent, received] = if is_sent { [start, 0] } else { [0, start] };
        Ok(Claim { width, sent, received, count })
    }

    /// The claimed products of which this party holds the ring element: these, and its shares.
    pub fn sent(&self, claim: &Claim) -> [PackedRef<'_>; 2] {
        let ProductsSent { rho, share } = &self.products.sent[claim.width.index()];
        [rho, share].map(|elements| elements.all().slice(claim.sent..claim.sent + claim.count))
    }

    /// The bits that this party holds of claimed products.
    pub fn choice(&self, claim: &Claim) -> Zeroizing<Bits> {
        let ProductsReceived { choice, .. } = &self.products.received[claim.width.index()];
        Zeroizing::new(choice.slice(claim.received, claim.count))
    }

    /// This party's shares of the claimed products of which it holds the bit.
    pub fn received(&self, claim: &Claim) -> PackedRef<'_> {
        let ProductsReceived { share, .. } = &self.products.received[claim.width.index()];
        share.all().slice(claim.received..claim.received + claim.count)
    }

    /// The next `count` tables of which this party has all entries.
    pub fn take_tables_sent(&mut self, shape: Shape, count: usize) -> Result<TablesSent, Error> {
        let start = self.claim(Kind::TablesSent(shape), count)?;
        Ok(self.tables.sent[shape as usize].cut(start, count))
    }

    /// The next `count` tables of which this party has one entry each.
    pub fn take_tables_received(&mut self, shape: Shape, count: usize) -> Result<TablesReceived, Error> {
        let start = self.claim(Kind::TablesReceived(shape), count)?;
        Ok(self.tables.received[shape as usize].cut(start, count))
    }

    /// The next `count` one-hot vectors of `2^bits` bits.
    ///
    /// # Panics
    /// Unless `6 <= bits <= 12`.
    pub fn take_one_hots(&mut self, bits: u32, count: usize) -> Result<OneHots, Error> {
        let index = one_hots::index(bits);
        let start = self.claim(Kind::OneHots(bits), count)?;
        Ok(self.one_hots[index].cut(start, count))
    }

    /// Makes private ANDs of the first bit OTs from the server, and triples of all other bit OTs.
    pub(crate) fn assemble(role: Role, demand: &Demand, ots: Ots) -> Self {
        let (ands, triples) = (demand.private_ands, demand.triples);
        let (sent, received) = (&ots.bits_sent, &ots.bits_received);
        let (private_ands, triples) = match role {
            Role::Server => {
                (PrivateAnds::Server(sent.cut(0, ands)), Triples::from_ots(&sent.cut(ands, triples), received))
            }
            Role::Client => {
                (PrivateAnds::Client(received.cut(0, ands)), Triples::from_ots(sent, &received.cut(ands, triples)))
            }
        };
        let paired_triples = PairedTriples::from_ots(&ots.pairs_sent, &ots.pairs_received);
        let Ots { products, tables, one_hots, .. } = ots;
        let (is_of_words, taken) = (false, [0; Kind::COUNT]);
        Self { role, private_ands, triples, paired_triples, products, is_of_words, tables, one_hots, taken }
    }

    pub(crate) fn left_of(&self, kind: Kind) -> usize {
        let total = match kind {
            Kind::PrivateAnds => self.private_ands.len(),
            Kind::Triples => self.triples.a.len(),
            Kind::PairedTriples => self.paired_triples.a.len(),
            Kind::ProductsSent(width) => self.products.sent[width.index()].rho.len(),
            Kind::ProductsReceived(width) => self.products.received[width.index()].share.len(),
            Kind::TablesSent(shape) => self.tables.sent[shape as usize].count(),
            Kind::TablesReceived(shape) => self.tables.received[shape as usize].count(),
            Kind::OneHots(bits) => self.one_hots[one_hots::index(bits)].count(),
        };
        total - self.taken[kind.index()]
    }

    /// Marks `asked` of `kind` as gone. Returns where they start.
    fn claim(&mut self, kind: Kind, asked: usize) -> Result<usize, Error> {
        let left = self.left_of(kind);
        if asked > left {
            return Err(Error::StockExhausted { asked, left, kind });
        }
        let start = self.taken[kind.index()];
        self.taken[kind.index()] += asked;
        Ok(start)
    }
}
