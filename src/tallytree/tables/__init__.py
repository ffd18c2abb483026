"""Tables: how many rows every region of a hierarchy has, by attributes."""
