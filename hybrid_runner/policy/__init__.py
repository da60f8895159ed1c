"""Pure decisions: time and chance come as arguments, nothing is read and nothing is done."""
