//! The page that a recipient opens.

pub struct TrackingPage {
    pub timeline: Vec<Scan>,
    pub window: Option<Window>,
}
