//! What a driver's device reports.

pub fn mark_failed(parcel: &str, reason: Reason, log: &mut Log) {
    log.publish(DeliveryFailed { parcel: parcel.into(), reason });
}
