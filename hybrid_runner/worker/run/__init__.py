"""Running claimed jobs: in the event loop, in threads, in processes."""
