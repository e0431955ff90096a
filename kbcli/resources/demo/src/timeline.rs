//! A parcel's scans in the order in which they happened.

pub fn of(parcel: &str, log: &Log) -> Vec<Scan> {
    let mut scans = log.scans_of(parcel);
    scans.sort_by_key(|scan| scan.happened_at);
    scans
}
