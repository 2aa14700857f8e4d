//! How the PEs of a job reach each other: the lane, the lifeboat, and the detector.

use super::bootstrap::agree;
use super::gathering::Gathering;
use super::passport::Passport;
use crate::error::StartError;
use crate::options::Options;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use ultramarine_runtime::detector::{Detector, DetectorEndpoint};
use ultramarine_runtime::executor::Watch;
use ultramarine_runtime::handshake::JobKey;
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::mpi::MpiLane;
use ultramarine_runtime::transport::tcp::TcpEndpoint;
use ultramarine_runtime::transport::{Lane, LaneError, descriptors};
use ultramarine_topology::{Pe, Topology};

/// The least number of descriptors that a process needs to talk with the others: seven for lane and
/// detector to listen and wait with, two for connections of the lane, three for those of the
/// detector.
const DESCRIPTORS_MIN: u64 = 12;

/// Where a process can be called.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Berth {
    lane: SocketAddr,
    detector: SocketAddr,
    /// A key for the job. That of rank 0 counts.
    key: JobKey,
}

/// The lane of this PE, and its watch over the others: what a process alone has none of.
pub(super) fn open(
    all: &Gathering<'_>,
    passports: &[Passport],
    topology: &Arc<Topology>,
    me: Pe,
    options: &Options,
    settings: &Settings,
) -> Result<(Box<dyn Lane>, Option<Watch>), StartError> {
    // First what all do together, and then what may fail: so each can say how it fared.
    let over_tcp = passports[all.rank()].over_tcp;
    let comm = (!over_tcp).then(|| all.communicator());
    let bound = bind(all, passports, options).and_then(|(endpoint, detector, own)| {
        let lane = |comm| MpiLane::new(comm, topology.clone());
        Ok((endpoint, detector, own, comm.transpose()?.map(lane).transpose()?))
    });
    let (ends, own) = match bound {
        Ok((endpoint, detector, own, mpi)) => (Some((endpoint, detector, mpi)), Ok(own)),
        Err(error) => (None, Err(error)),
    };
    let berths = agree(all, own)?;
    let (endpoint, detector, mpi) = ends.ok_or(StartError::SaidElsewhere)?;
    let by_pe = |pick: fn(&Berth) -> SocketAddr| {
        let berth = |n| pick(&berths[topology.rank_of(Pe::new(n)) as usize]);
        (0..topology.pes()).map(berth).collect::<Vec<_>>()
    };
    let key = berths[0].key;
    let connections_max = settings.connections_max(1);
    let tcp = endpoint.into_lane(me, by_pe(|berth| berth.lane), key, connections_max)?;
    let tcp = Box::new(tcp) as Box<dyn Lane>;
    let (lane, lifeboat) = match mpi {
        None => (tcp, None),
        Some(mpi) => (Box::new(mpi) as Box<dyn Lane>, Some(tcp)),
    };
    if topology.pes() == 1 {
        return Ok((lane, None));
    }
    let addresses = by_pe(|berth| berth.detector);
    let (topology, settings) = (topology.clone(), settings.detector);
    let begin = Box::new(move |report| {
        let started = Detector::start(me, topology, detector, addresses, key, settings, report);
        Ok(Box::new(started?) as Box<_>)
    });
    Ok((lane, Some(Watch { lifeboat, begin })))
}

/// Takes ports to listen on.
fn bind(
    all: &Gathering<'_>,
    passports: &[Passport],
    options: &Options,
) -> Result<(TcpEndpoint, DetectorEndpoint, Berth), StartError> {
    let one_host = passports.iter().all(|other| other.host == passports[0].host);
    let (listen, advertise) = own_address(&passports[all.rank()].host, one_host)?;
    let ports = options.port_range();
    descriptors::demand(DESCRIPTORS_MIN)?;
    let lane = TcpEndpoint::bind(listen, ports.clone())?;
    let detector = DetectorEndpoint::bind(listen, ports)?;
    let berth = Berth {
        lane: SocketAddr::new(advertise, lane.address().port()),
        detector: SocketAddr::new(advertise, detector.address().port()),
        key: JobKey::random()?,
    };
    Ok((lane, detector, berth))
}

/// Where to listen, and the address that others reach that by.
fn own_address(host: &str, one_host: bool) -> Result<(IpAddr, IpAddr), LaneError> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if one_host {
        return Ok((here, here));
    }
    let io = |source| LaneError::Io { doing: format!("looking up the address of {host}"), source };
    let mut found = (host, 0).to_socket_addrs().map_err(io)?.map(|address| address.ip());
    let usable = found.find(|ip| !ip.is_loopback()).ok_or_else(|| {
        io(std::io::Error::other("its name stands only for addresses that no other host can reach"))
    })?;
    Ok((usable, usable))
}
