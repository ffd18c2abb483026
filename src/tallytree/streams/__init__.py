"""Running counts: one number per step, released as the steps come. Start reading in ``kind.py``."""
