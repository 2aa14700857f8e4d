//! How the PEs of a job reach each other: the lane, the fallback lane, the detector, and the boards
//! of their host.

use super::collectives::{Collectives, decide};
use super::rank_info::RankInfo;
use super::roster::{Network, Roster};
use crate::error::StartError;
use crate::network;
use crate::options::Options;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_environment::launcher::is_ucx_eager;
use ultramarine_guard::Testimony;
use ultramarine_runtime::addresses::Addresses;
use ultramarine_runtime::detector::{Detector, DetectorEndpoint, Witness};
use ultramarine_runtime::executor::{BoardAddress, BoardSetup, DetectorSetup, OwnBoard};
use ultramarine_runtime::handshake::JobKey;
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::mpi::MpiLane;
use ultramarine_runtime::transport::tcp::{self, TcpEndpoint};
use ultramarine_runtime::transport::{Lane, LaneError, descriptors};
use ultramarine_topology::{Pe, Topology};

/// The least number of descriptors that a process needs to talk with the others: seven for lane and
/// detector to listen and wait with, two for connections of the lane, three for those of the
/// detector, two to be known as there, or as gone, one for its board.
const DESCRIPTORS_MIN: u64 = 15;

/// How long a guard answers after the last call, and at most: those that watched its child call at
/// once.
const TESTIFIES_FOR: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];

/// Tells those that call on this listener that the process is gone, whose guard this is.
pub(super) fn testify(listener: &TcpListener, words: &str) {
    let [quiet, within] = TESTIFIES_FOR;
    if let Some(witness) = Witness::from_words(words) {
        witness.answer(listener, quiet, within);
    }
}

/// The address of a process, with its two ports.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Endpoint {
    ip: IpAddr,
    lane: u16,
    detector: u16,
    /// The numbers of the process and of the file that is its board, if it has one.
    board: Option<(u32, u32)>,
}

/// The addresses of all processes, by PE.
#[derive(Serialize, Deserialize)]
struct AddressBook {
    lane: Addresses,
    detector: Addresses,
    boards: Vec<Option<(u32, u32)>>,
    key: JobKey,
}

impl AddressBook {
    /// Of endpoints by rank.
    fn of(endpoints: &[Endpoint], topology: &Topology) -> Result<AddressBook, StartError> {
        let by_pe = |port: fn(&Endpoint) -> u16| {
            let endpoint = |n| &endpoints[topology.rank_of(Pe::new(n)) as usize];
            let address = |of: &Endpoint| SocketAddr::new(of.ip, port(of));
            (0..topology.pes()).map(endpoint).map(address).collect()
        };
        let board = |n| endpoints[topology.rank_of(Pe::new(n)) as usize].board;
        Ok(AddressBook {
            lane: by_pe(|of| of.lane),
            detector: by_pe(|of| of.detector),
            boards: (0..topology.pes()).map(board).collect(),
            key: tcp::new_job_key()?,
        })
    }
}

/// How a PE reaches the others.
pub(super) struct Connected {
    pub(super) lane: Box<dyn Lane>,
    /// The only process of a job has none.
    pub(super) detector: Option<DetectorSetup>,
    pub(super) boards: Option<BoardSetup>,
    pub(super) presence: Presence,
}

/// How guards learn which processes are there.
pub(super) struct Presence {
    /// Where some of the others listen until they end.
    pub(super) others: Vec<SocketAddr>,
    /// Where this process does. The system answers while this is open.
    pub(super) listens: OwnedFd,
    /// What the guard says when this process has died. The only process of a job has none.
    pub(super) testimony: Option<Testimony>,
}

/// A guard asks at most this number of processes whether they are there.
const OTHERS_MAX: usize = 256;

/// The addresses of some PEs other than this, from all parts of the job.
fn some_others(me: Pe, addresses: &Addresses, pes: u32) -> Vec<SocketAddr> {
    let others = (0..pes).map(Pe::new).filter(|pe| *pe != me);
    let step = (pes as usize).div_ceil(OTHERS_MAX).max(1);
    others.step_by(step).map(|pe| addresses.of(pe)).collect()
}

/// Connects this PE with the others.
pub(super) fn open(
    all: &Collectives<'_>,
    (own, roster): (&RankInfo, &Roster),
    topology: &Arc<Topology>,
    options: &Options,
    settings: &Settings,
) -> Result<Connected, StartError> {
    let me = topology.pe_of(all.rank() as u32);
    // First the collective step, then what may fail: so each process can report how it went.
    let comm = (!own.over_tcp).then(|| all.communicator());
    let ends = own_address(own, &roster.network).and_then(|ip| {
        let (tcp, detector) = bind(ip, options)?;
        let io = |source| LaneError::Io { doing: "handing over its address".to_owned(), source };
        let seconds = [tcp.second_descriptor(), detector.second_descriptor()];
        let [listens, of_guard] = seconds.map(|second| second.map_err(io));
        let lane = |comm| MpiLane::new(me, comm, topology.clone(), is_ucx_eager());
        let mpi = comm.transpose()?.map(lane).transpose()?;
        Ok((ip, tcp, detector, mpi, (listens?, of_guard?)))
    });
    let board = own_board(me, topology, settings);
    let (ends, own) = match ends {
        Ok((ip, tcp, detector, mpi, seconds)) => {
            let (lane, watch) = (tcp.address().port(), detector.address().port());
            let board = board.as_ref().map(|own| {
                let BoardAddress { process, descriptor } = own.address();
                (process, descriptor)
            });
            (Some((tcp, detector, mpi, seconds)), Ok(Endpoint { ip, lane, detector: watch, board }))
        }
        Err(error) => (None, Err(error.into())),
    };
    let book = decide(all, &own, |endpoints| AddressBook::of(&endpoints, topology))?;
    let (tcp, detector, mpi, (listens, of_guard)) = ends.ok_or(StartError::SaidElsewhere)?;
    let connections = settings.connection_shares(1);
    let others = some_others(me, &book.lane, topology.pes());
    let tcp = tcp.into_lane(me, book.lane, book.key, connections.lane)?;
    let tcp = Box::new(tcp) as Box<dyn Lane>;
    let (lane, fallback) = match mpi {
        None => (tcp, None),
        Some(mpi) => (Box::new(mpi) as Box<dyn Lane>, Some(tcp)),
    };
    if topology.pes() == 1 {
        let presence = Presence { others, listens, testimony: None };
        return Ok(Connected { lane, detector: None, boards: None, presence });
    }
    let (addresses, key) = (book.detector, book.key);
    let board_of = |pe: Pe| {
        let (process, descriptor) = book.boards[pe.index()]?;
        Some(BoardAddress { process, descriptor })
    };
    let boards = board.and_then(|own| BoardSetup::new(me, topology, own, board_of, key));
    let words = Witness::new(me, topology.pes(), key).to_words();
    let testimony = Some(Testimony { listener: of_guard.into(), words });
    let presence = Presence { others, listens, testimony };
    let (topology, settings) = (topology.clone(), settings.detector);
    let start = Box::new(move |report| {
        let detector = detector.with_connections_max(connections.detector);
        let started = Detector::start(me, topology, detector, addresses, key, settings, report);
        Ok(Box::new(started?) as Box<_>)
    });
    Ok(Connected { lane, detector: Some(DetectorSetup { fallback, start }), boards, presence })
}

/// The board of this process, if there are others on its host, and these may use it.
fn own_board(me: Pe, topology: &Topology, settings: &Settings) -> Option<OwnBoard> {
    if !settings.steal_in_memory || topology.host_of(me).len() == 1 {
        return None;
    }
    let refused = |error: &std::io::Error| {
        tracing::debug!(pe = me.number(), "tasks come by message, as there is no board: {error}");
    };
    OwnBoard::create().inspect_err(refused).ok()
}

/// Takes ports to listen on.
fn bind(ip: IpAddr, options: &Options) -> Result<(TcpEndpoint, DetectorEndpoint), LaneError> {
    let ports = options.port_range();
    descriptors::require(DESCRIPTORS_MIN)?;
    Ok((TcpEndpoint::bind(ip, ports.clone())?, DetectorEndpoint::bind(ip, ports)?))
}

/// Where this process listens, and others call it.
fn own_address(own: &RankInfo, network: &Network) -> Result<IpAddr, LaneError> {
    let in_network =
        |common: &IpNet| own.interfaces.iter().find(|own| own.address.trunc() == *common);
    let interface = match network {
        _ if own.interface.is_some() => own.interfaces.first(),
        Network::Common(common) => in_network(common),
        Network::Loopback | Network::ByName => None,
    };
    let (address, said) = match (interface, network) {
        (Some(interface), _) => (interface.address.addr(), interface.to_string()),
        (None, Network::Loopback) => (Ipv4Addr::LOCALHOST.into(), "loopback".to_owned()),
        (None, _) => {
            let address = address_of(&own.host)?;
            (address, format!("{address}, by the name {}", own.host))
        }
    };
    network::set_network_of_this_job(said);
    Ok(address)
}

/// The address that a host's name stands for.
fn address_of(host: &str) -> Result<IpAddr, LaneError> {
    let io = |source| LaneError::Io { doing: format!("looking up the address of {host}"), source };
    let mut found = (host, 0).to_socket_addrs().map_err(io)?.map(|address| address.ip());
    found.find(|ip| !ip.is_loopback()).ok_or_else(|| {
        io(std::io::Error::other("its name stands only for addresses that no other host can reach"))
    })
}
