//! Messages to other PEs, until the port takes them.
//!
//! The port takes only a limited number of bytes for each peer (`backlog_bytes_max`). Messages
//! beyond that wait here, so that a PE that spawns faster than the network carries only needs
//! memory. Messages to one peer stay in order. Short ones that follow each other go together, as
//! one *packet*, which the receiver takes apart.

use super::failure::JobError;
use crate::array::Array;
use crate::protocol::Message;
use crate::transport::Port;
use crate::wire;
use std::collections::{BTreeMap, VecDeque};
use ultramarine_topology::Pe;

/// The encoding buffer is kept unless it is larger than this, in bytes.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// Messages are put together in packets up to this, in bytes: some fifty placed tasks. (A packet
/// for each task took a twentieth more of their time.)
const PACKET_BYTES_MAX: usize = 2 << 10;

/// Short messages, or a message with an array that is sent beside it.
struct Packet {
    bytes: Vec<u8>,
    array: Option<Array>,
    /// It arrives after all packets of which this is true.
    in_order: bool,
}

/// Messages on their way to the port.
#[derive(Default)]
pub(crate) struct SendQueue {
    sent: VecDeque<(Pe, Message)>,
    /// Packets for which the port had no room, oldest first. No entry is empty.
    waiting: BTreeMap<Pe, VecDeque<Packet>>,
    /// The packet that is being filled.
    packet: Vec<u8>,
}

impl SendQueue {
    pub(crate) fn push(&mut self, to: Pe, message: Message) {
        self.sent.push_back((to, message));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    /// Drops what the port had no room for: the job is ending, and no one waits for it.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Hands the port what it takes. Returns whether it took anything.
    pub(crate) fn post(&mut self, me: Pe, port: &mut Port) -> Result<bool, JobError> {
        let mut posting = Posting { me, port, has_posted: false };
        let mut failure = None;
        self.waiting.retain(|to, packets| {
            while failure.is_none()
                && let Some(Packet { bytes, array, in_order }) = packets.front()
            {
                match posting.post(*to, bytes, array.as_ref(), *in_order) {
                    Ok(true) => drop(packets.pop_front()),
                    Ok(false) => break,
                    Err(error) => failure = Some(error),
                }
            }
            !packets.is_empty()
        });
        failure.map_or(Ok(()), Err)?;
        // An earlier error may have left a rest.
        self.packet.clear();
        let mut open = None;
        while let Some((to, mut message)) = self.sent.pop_front() {
            let array = message.take_array();
            let in_order =
                message.is_in_order() && (array.is_some() || self.is_behind(to, &posting));
            if let Some((to, in_order)) =
                open.take_if(|other| *other != (to, in_order) || array.is_some())
            {
                self.close(to, self.packet.len(), None, in_order, &mut posting)?;
            }
            let before = self.packet.len();
            let encoded = wire::encode_into(&message, &mut self.packet);
            encoded.map_err(|source| JobError::Message { me, from: me, source })?;
            // The message itself may be large.
            drop(message);
            if before > 0 && self.packet.len() > PACKET_BYTES_MAX {
                self.close(to, before, None, in_order, &mut posting)?;
            }
            if array.is_some() {
                self.close(to, self.packet.len(), array, in_order, &mut posting)?;
            } else {
                open = Some((to, in_order));
            }
        }
        if let Some((to, in_order)) = open {
            self.close(to, self.packet.len(), None, in_order, &mut posting)?;
        }
        Ok(posting.has_posted)
    }

    /// Whether another message to this PE, perhaps one with an array, is on its way or waits.
    fn is_behind(&self, to: Pe, posting: &Posting<'_>) -> bool {
        self.waiting.contains_key(&to) || posting.port.is_behind_array(to)
    }

    /// Sends the first `length` bytes of the packet, or queues them behind those that wait.
    fn close(
        &mut self,
        to: Pe,
        length: usize,
        array: Option<Array>,
        in_order: bool,
        posting: &mut Posting<'_>,
    ) -> Result<(), JobError> {
        let bytes = &self.packet[..length];
        let has_to_wait =
            self.waiting.contains_key(&to) || !posting.post(to, bytes, array.as_ref(), in_order)?;
        if has_to_wait {
            let packet = Packet { bytes: bytes.to_vec(), array, in_order };
            self.waiting.entry(to).or_default().push_back(packet);
        }
        self.packet.drain(..length);
        if self.packet.capacity() > BUFFER_KEPT_MAX {
            self.packet.shrink_to(BUFFER_KEPT_MAX);
        }
        Ok(())
    }
}

/// The port to which packets are handed.
struct Posting<'a> {
    me: Pe,
    port: &'a mut Port,
    /// Whether it has taken any.
    has_posted: bool,
}

impl Posting<'_> {
    /// Hands the port a packet. Returns whether it took it.
    fn post(
        &mut self,
        to: Pe,
        bytes: &[u8],
        array: Option<&Array>,
        in_order: bool,
    ) -> Result<bool, JobError> {
        let taken = if in_order {
            self.port.send_in_order(to, bytes, array)
        } else {
            self.port.send(to, bytes, array)
        };
        let taken = taken.map_err(|source| JobError::Link { me: self.me, source })?;
        self.has_posted |= taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::Message;
    use crate::transport::{PortSettings, memory, testing};
    use std::time::Duration;

    const THERE: Pe = Pe::new(1);

    fn message(number: u64, bytes: usize) -> Message {
        Message::Result { future: number, outcome: Ok(vec![number as u8; bytes].into()) }
    }

    /// Two ports with room for this many bytes, of which the second is PE 1's.
    fn ports(backlog_bytes_max: usize) -> [Port; 2] {
        let settings = PortSettings { backlog_bytes_max, ..PortSettings::default() };
        testing::ports(memory::network(2), settings)
    }

    /// The lengths of the packets that the other port gets.
    fn lengths(port: &mut Port, peer: &mut Port) -> Vec<usize> {
        let mut lengths = Vec::new();
        port.flush(Duration::ZERO).expect("the peer is there");
        peer.poll(Duration::ZERO, &mut |_, packet, _| lengths.push(packet.len()))
            .expect("it goes on");
        lengths
    }

    #[test]
    fn what_the_port_has_no_room_for_waits_and_arrives_in_order() {
        let [mut port, mut peer] = ports(1 << 20);
        let mut send_queue = SendQueue::default();
        for number in 0..40 {
            // Large ones, and small ones that must not overtake them; some to this PE itself.
            send_queue.push(THERE, message(number, if number % 2 == 0 { 300 << 10 } else { 3 }));
            send_queue.push(Pe::ROOT, message(number, 300 << 10));
        }
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("nothing is too long"));
        assert!(!send_queue.is_empty());
        let (mut there, mut here) = (Vec::new(), Vec::new());
        let numbers = |mut packet: &[u8]| {
            let mut numbers = Vec::new();
            while !packet.is_empty() {
                match wire::decode_first(&mut packet).expect("as it was sent") {
                    Message::Result { future, .. } => numbers.push(future),
                    other => panic!("{other:?}"),
                }
            }
            numbers
        };
        for round in 0..10_000 {
            let now = Duration::from_millis(round);
            port.poll(now, &mut |_, bytes, _| here.extend(numbers(bytes))).expect("it goes on");
            peer.poll(now, &mut |_, bytes, _| there.extend(numbers(bytes))).expect("it goes on");
            send_queue.post(Pe::ROOT, &mut port).expect("nothing is too long");
            if send_queue.is_empty() && port.is_idle() && peer.is_idle() {
                break;
            }
        }
        assert!(send_queue.is_empty(), "all have found room");
        assert_eq!(there, (0..40).collect::<Vec<_>>());
        assert_eq!(here, there);
    }

    #[test]
    fn nothing_is_posted_while_there_is_no_room_and_the_dead_need_none() {
        let [mut port, _] = ports(1000);
        let mut send_queue = SendQueue::default();
        (0..3).for_each(|number| send_queue.push(THERE, message(number, 800)));
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("one fits"));
        assert!(!send_queue.post(Pe::ROOT, &mut port).expect("none fits"));
        port.close(THERE);
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("they go nowhere"));
        assert!(send_queue.is_empty());
    }

    #[test]
    fn short_messages_go_together_and_others_between_them_alone() {
        let [mut port, mut peer] = ports(1 << 20);
        let mut send_queue = SendQueue::default();
        (0..10).for_each(|number| send_queue.push(THERE, message(number, 10)));
        send_queue.push(THERE, message(10, PACKET_BYTES_MAX));
        (11..200).for_each(|number| send_queue.push(THERE, message(number, 100)));
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("they are not too long"));
        let lengths = lengths(&mut port, &mut peer);
        assert!(lengths[0] < 200 && lengths[1] > PACKET_BYTES_MAX, "{lengths:?}");
        assert!((9..15).contains(&lengths[2..].len()), "{lengths:?}");
        assert!(lengths[2..].iter().all(|length| *length <= PACKET_BYTES_MAX), "{lengths:?}");
    }

    #[test]
    fn a_long_message_goes_alone_also_behind_the_shortest() {
        let [mut port, mut peer] = ports(1 << 20);
        let mut send_queue = SendQueue::default();
        send_queue.push(THERE, Message::Farewell);
        send_queue.push(THERE, message(0, PACKET_BYTES_MAX));
        send_queue.push(THERE, Message::Farewell);
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("they are not too long"));
        let lengths = lengths(&mut port, &mut peer);
        assert!(lengths[1] > PACKET_BYTES_MAX, "{lengths:?}");
        assert_eq!([lengths.len(), lengths[0], lengths[2]], [3, 1, 1]);
    }

    #[test]
    fn a_message_that_is_longer_than_the_room_goes_alone() {
        let [mut port, _] = ports(100);
        let mut send_queue = SendQueue::default();
        send_queue.push(THERE, message(0, 5000));
        assert!(send_queue.post(Pe::ROOT, &mut port).expect("nothing waits before it"));
        assert!(send_queue.is_empty());
    }
}
