"""Hay, Rastogi, Miklau and Suciu 2010: theorems and figures, theirs beside ours."""
