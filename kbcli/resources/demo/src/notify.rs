//! Tells recipients what happened to their parcels.

pub fn send(message: Message, channel: &dyn Channel) {
    channel.deliver(message);
}
