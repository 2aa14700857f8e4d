//! Machines of each source, and what they are made of.

use super::*;

fn machine(shape: &str) -> Machine {
    Machine::of_shape(shape).expect(shape)
}

#[test]
fn a_shape_becomes_a_hierarchy() {
    let all = machine("2x2x3x2x16");
    assert_eq!((all.pes(), all.cores()), (24, 384));
    assert_eq!(all.topology().radii().len(), 5, "host, rack, group, machine and the PE itself");
    let tier = |q| all.tier(Pe::ROOT, Pe::new(q));
    assert_eq!(
        [0, 1, 2, 5].map(tier),
        [None, Some(Tier::Host), Some(Tier::Rack), Some(Tier::Rack)]
    );
    assert_eq!([6, 12, 23].map(tier), [Some(Tier::Machine); 3]);
    assert!((0..24).all(|pe| all.workers(Pe::new(pe)) == 16));
    assert_eq!(all.topology().power(Pe::ROOT), 16);
    assert_eq!(all.topology().rank_of(Pe::new(17)), 17, "numbered as planned");
}

#[test]
fn levels_that_exist_once_add_no_distance() {
    let host = machine("4x16");
    assert_eq!(host.topology().radii().len(), 2);
    assert_eq!(host.tier(Pe::ROOT, Pe::new(3)), Some(Tier::Host));
    let one = machine("16");
    assert_eq!((one.pes(), one.tier(Pe::ROOT, Pe::ROOT)), (1, None));
    let hosts = machine("8x1x16");
    assert_eq!(hosts.tier(Pe::ROOT, Pe::new(7)), Some(Tier::Rack));
}

#[test]
fn cores_become_hosts_and_racks() {
    let machine = |cores, workers| Machine::of_cores(cores, workers, &Variation::default());
    let text = |cores, workers| {
        machine(cores, workers).map_or_else(|error| error.to_string(), |it| it.to_string())
    };
    assert_eq!(text(16, 16), "16 cores: 1 PE on 1 host in 1 rack");
    assert_eq!(text(32, 16), "32 cores: 2 PEs on 1 host in 1 rack");
    assert_eq!(text(2048, 16), "2048 cores: 128 PEs on 64 hosts in 2 racks");
    assert_eq!(text(131_072, 1), "131072 cores: 131072 PEs on 4096 hosts in 128 racks");
    assert_eq!(text(128, 64), "128 cores: 2 PEs on 2 hosts in 1 rack");
    assert_eq!(text(48, 16), "48 cores: 3 PEs on 2 hosts in 1 rack");
    assert!(text(0, 16).contains("give a multiple of 16"));
    assert!(text(16, 0).contains("1 to 65536 are allowed"));
}

#[test]
fn unequal_hosts() {
    let variation = Variation {
        unequal: Some("16,8,4".parse().expect("a list")),
        slow_hosts: Some("0.5:1.5".parse().expect("a fraction")),
        ..Variation::default()
    };
    let all = Machine::new(&"4x2x32".parse().expect("a shape"), &variation).expect("a machine");
    let workers: Vec<u32> = (0..8).map(|pe| all.workers(Pe::new(pe))).collect();
    assert_eq!(workers, [16, 16, 8, 8, 4, 4, 16, 16]);
    assert_eq!(all.cores(), 88);
    assert_eq!(all.topology().power(Pe::new(4)), 4);
    let slow: Vec<Pe> = (0..8).map(Pe::new).filter(|pe| all.slowness(*pe) > 1.0).collect();
    assert_eq!(slow.len(), 4, "two of four hosts");
    assert!((all.slowness(slow[0]) - 1.5).abs() < 1e-9);
}

#[test]
fn a_topology_file_becomes_a_machine() {
    // The hosts of rack a come in two groups: PEs are numbered by rack all the same.
    let text = "[[hosts]]\nnames = \"n[1-2]\"\nswitches = [\"a\"]\n\
                [[hosts]]\nnames = \"n3\"\nswitches = [\"b\"]\n\
                [[hosts]]\nnames = \"n4\"\nswitches = [\"a\"]\n";
    let path = std::env::temp_dir().join(format!("simulator-machine-{}", std::process::id()));
    std::fs::write(&path, text).expect("there is room");
    let variation =
        Variation { unequal: Some("1,2,3,4".parse().expect("a list")), ..Variation::default() };
    let all = Machine::of_file(&path, 2, 8, &variation);
    std::fs::remove_file(&path).expect("it is ours");
    let all = all.expect("a machine");
    let workers: Vec<u32> = (0..8).map(|pe| all.workers(Pe::new(pe))).collect();
    assert_eq!(workers, [1, 1, 2, 2, 4, 4, 3, 3]);
    assert_eq!(all.topology().place(Pe::new(4)).host(), Some("n4"));
    assert_eq!(all.tier(Pe::new(0), Pe::new(5)), Some(Tier::Rack));
    assert_eq!(all.tier(Pe::new(0), Pe::new(6)), Some(Tier::Machine));
    assert_eq!(all.to_string(), "20 cores: 8 PEs on 4 hosts in 2 racks");

    let error = Machine::of_file(Path::new("/nowhere/machine.toml"), 1, 1, &variation);
    let error = error.expect_err("no such file").to_string();
    assert!(error.starts_with("cannot read the topology file /nowhere/machine.toml"), "{error}");
}

#[test]
fn the_largest_machine_is_built() {
    let all = machine("128x32x1024x16");
    assert_eq!((all.pes(), all.cores()), (PES_MAX, 67_108_864));
    assert_eq!(all.tier(Pe::ROOT, Pe::new(PES_MAX - 1)), Some(Tier::Machine));
}
