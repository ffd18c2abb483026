"""The questions that options answer: the help shows the options of one question together."""

from __future__ import annotations

TABLE = "Your table"
PUBLIC = "What is public"
PRIVACY = "Privacy and payment"
PLAN = "Plan"
QUESTION = "Your question"
OUTPUT = "Output"
EXPERTS = "Experts"

PANELS = (TABLE, PUBLIC, PRIVACY, PLAN, QUESTION, OUTPUT, EXPERTS)
"""In the order in which the help shows them."""
