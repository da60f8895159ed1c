"""What `hybrid-runner schedules` prints and stores."""
