"""The network itself: its step, its features, its readout."""
