"""What workers do for each other: putting back what dead ones ran, and the chores of the tables."""
