"""The whole story, a page per kind of release: plan, measure, estimate, reconcile, release."""
