//! When a parcel will come, as a window of time.

pub struct Estimator {
    pub history: Vec<Round>,
}
