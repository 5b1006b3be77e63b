"""What is random: named streams, inputs, labels, first weights."""
