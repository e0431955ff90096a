//! Forgets recipients ninety days after delivery.

pub fn run(today: Date, log: &mut Log) {
    for parcel in log.delivered_before(today.minus_days(90)) {
        log.forget_recipient(parcel);
    }
}
