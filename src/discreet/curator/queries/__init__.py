"""The questions that a curator answers: one file per question, with its proof."""
