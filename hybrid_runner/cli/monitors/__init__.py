"""What `hybrid-runner monitors` reads, prints and stores."""
