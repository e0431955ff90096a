//! Takes scans in, each one once, however often a depot sends it.

pub fn accept(scan: Scan, log: &mut Log) -> bool {
    log.append_once(scan.id, scan)
}
