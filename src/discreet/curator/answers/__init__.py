"""What a curator answers, by the kind of mechanism: sums, choices, points. Each answer has its proof."""
